// Unpacks Plotly, draws the figures, and keeps them in step with the controls, the colour scheme and the printer.
(() => {
  "use strict";
  const plots = [...document.querySelectorAll(".plot")];
  const kindOf = (plot) => plot.dataset.plot;
  const options = { displayModeBar: false, doubleClick: false, showTips: false };
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // The bundle is text in the page; its hash stands in the page's policy, so the browser runs this and nothing else.
  const unpack = async () => {
    const packed = document.getElementById("plotly-packed").textContent.trim();
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const text = await new Response(stream).text();
    // The bundle would add a style sheet for maps, which the policy refuses, unless an element has its id already.
    for (const [, id] of text.matchAll(/getElementById\("([0-9a-f]{64})"\)/g)) {
      document.head.append(Object.assign(document.createElement("meta"), { id }));
    }
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  };

  let widest = Infinity;
  const draw = (plot, keepView = true) => {
    const { layout: before } = plot;
    const view =
      keepView && plot.dataset.zoomed ? { xaxis: [...before.xaxis.range], yaxis: [...before.yaxis.range] } : undefined;
    const width = Math.min(plot.clientWidth, widest);
    const { traces, layout } = figures[kindOf(plot)](width, view);
    for (const name in view) layout[name].range = [...view[name]]; // Plotly writes into it
    if (layout.height) plot.style.height = `${layout.height}px`;
    return Plotly.react(plot, traces, { ...layout, width, height: layout.height ?? plot.clientHeight }, options);
  };
  const drawAll = () => Promise.all(plots.map((plot) => draw(plot)));

  const setRanges = (plot, change) => {
    const moved = {};
    for (const name of ["xaxis", "yaxis"]) {
      const [low, high] = plot._fullLayout[name].range;
      const [a, b] = change(low, high, name);
      moved[`${name}.range[0]`] = a;
      moved[`${name}.range[1]`] = b;
    }
    plot.dataset.zoomed = "yes";
    return Plotly.relayout(plot, moved);
  };
  const zoom = (plot, factor) =>
    setRanges(plot, (low, high) => {
      const middle = (low + high) / 2;
      const half = ((high - low) / 2) * factor;
      return [middle - half, middle + half];
    });
  const reset = (plot) => {
    delete plot.dataset.zoomed;
    return draw(plot, false);
  };
  const pan = (plot, dx, dy) =>
    setRanges(plot, (low, high, name) => {
      const shift = (high - low) * (name === "xaxis" ? dx : dy);
      return [low + shift, high + shift];
    });

  const keys = {
    "+": (plot) => zoom(plot, 0.6),
    "=": (plot) => zoom(plot, 0.6),
    "-": (plot) => zoom(plot, 1 / 0.6),
    0: reset,
    ArrowLeft: (plot) => pan(plot, -0.15, 0),
    ArrowRight: (plot) => pan(plot, 0.15, 0),
    ArrowUp: (plot) => pan(plot, 0, 0.15),
    ArrowDown: (plot) => pan(plot, 0, -0.15),
  };

  const listen = () => {
    for (const plot of plots) {
      const kind = kindOf(plot);
      const legend = document.querySelector(`.legend[data-for="${kind}"]`);
      const controls = document.querySelector(`.controls[data-for="${kind}"]`);
      legend?.addEventListener("change", () => draw(plot));
      controls?.addEventListener("click", ({ target }) => {
        const factor = Number(target.dataset?.zoom ?? "NaN");
        if (factor === 0) reset(plot);
        else if (factor > 0) zoom(plot, factor);
      });
      if (controls) {
        plot.addEventListener("keydown", (event) => {
          if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
          event.preventDefault();
          keys[event.key](plot);
        });
        plot.on("plotly_relayout", (change) => {
          if (!("xaxis.range[0]" in change || "yaxis.range[0]" in change)) return;
          plot.dataset.zoomed = "yes";
          draw(plot);
        });
        plot.on("plotly_doubleclick", () => reset(plot));
      }
    }
    for (const select of document.querySelectorAll("select")) {
      select.addEventListener("change", () => draw(select.closest("figure").querySelector(".plot")));
    }
    dark.addEventListener("change", drawAll);
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth !== width) requestAnimationFrame(drawAll);
      width = innerWidth;
    });
  };

  // Paper is white and narrower than the screen.
  const paper = (printing) => {
    document.documentElement.classList.toggle("printing", printing);
    widest = printing ? 640 : Infinity;
    drawAll();
  };

  const start = async () => {
    if (typeof DecompressionStream === "undefined") return;
    await unpack();
    plots.forEach((plot) => plot.replaceChildren());
    await drawAll();
    listen();
    addEventListener("beforeprint", () => paper(true));
    addEventListener("afterprint", () => paper(false));
    document.documentElement.dataset.ready = "yes";
  };
  start();
})();
