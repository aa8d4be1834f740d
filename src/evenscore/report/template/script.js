// Sorting the table of results by its column headings.
(() => {
  "use strict";
  const table = document.getElementById("results-table");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];

  const valueOf = (row, column) => row.cells[column].dataset.value;

  // Missing values stay last, whichever way the column is sorted.
  const compare = (a, b, sign) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const difference = Number(a) - Number(b);
    return sign * (Number.isNaN(difference) ? a.localeCompare(b, "en", { numeric: true }) : difference);
  };

  const sort = (column) => {
    const descending = heads[column].getAttribute("aria-sort") === "ascending";
    const rows = [...body.rows];
    rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), descending ? -1 : 1));
    body.append(...rows);
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
    document.getElementById("sorted").textContent =
      `Sorted by ${heads[column].textContent.trim()}, ${descending ? "descending" : "ascending"}.`;
  };

  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(column)));
})();

// Charts: which methods are shown, and what the point next to the pointer says.
(() => {
  "use strict";
  for (const legend of document.querySelectorAll(".legend")) {
    const figure = legend.closest("figure");
    legend.addEventListener("change", ({ target }) => {
      for (const curve of figure.querySelectorAll(`[data-system="${target.value}"]`)) {
        curve.classList.toggle("off", !target.checked);
      }
    });
  }

  const chosen = document.getElementById("histogram-system");
  chosen?.addEventListener("change", () => {
    for (const panel of document.querySelectorAll(".panel:not(.first)")) {
      panel.classList.toggle("off", panel.dataset.system !== chosen.value);
    }
  });

  // The corners of a curve, as numbers.
  const corners = new Map();
  const cornersOf = (path) => {
    if (!corners.has(path)) {
      const places = path.getAttribute("d").slice(1).split("L").map((pair) => pair.split(" ").map(Number));
      corners.set(path, { places, values: JSON.parse(path.dataset.values) });
    }
    return corners.get(path);
  };
  const nearest = (svg, x, y, reach) => {
    let best = { distance: reach };
    for (const path of svg.querySelectorAll("g:not(.off) > .curve")) {
      cornersOf(path).places.forEach(([a, b], at) => {
        const distance = Math.hypot(a - x, b - y);
        if (distance < best.distance) best = { distance, path, at, a, b };
      });
    }
    return best.path && best;
  };

  for (const plot of document.querySelectorAll(".plot")) {
    const svg = plot.querySelector("svg");
    const inner = svg.querySelector("svg");
    const controls = plot.previousElementSibling;
    const home = inner.viewBox.baseVal;
    const [left, top, width, height] = [home.x, home.y, home.width, home.height];
    const view = { x: left, y: top, scale: 1 };

    // Shows a part of the chart; ticks move with it, and finer ones appear.
    const look = (x, y, scale) => {
      view.scale = Math.min(Math.max(scale, 1), 16);
      const [w, h] = [width / view.scale, height / view.scale];
      view.x = Math.min(Math.max(x, left), left + width - w);
      view.y = Math.min(Math.max(y, top), top + height - h);
      inner.setAttribute("viewBox", `${view.x} ${view.y} ${w} ${h}`);
      plot.style.setProperty("--zoom", view.scale);
      plot.classList.toggle("near", view.scale > 1.9);
      for (const tick of svg.querySelectorAll(".tick")) {
        const across = tick.dataset.axis === "x";
        const at = (tick.dataset.at - (across ? view.x : view.y)) * view.scale;
        const shift = at + (across ? left : top) - tick.dataset.at;
        tick.setAttribute("transform", across ? `translate(${shift} 0)` : `translate(0 ${shift})`);
        tick.classList.toggle("off", at < -0.1 || at > (across ? width : height) + 0.1);
      }
    };
    const zoom = (factor, x, y) => {
      const scale = Math.min(Math.max(view.scale * factor, 1), 16);
      look(x - ((x - view.x) * view.scale) / scale, y - ((y - view.y) * view.scale) / scale, scale);
    };
    const place = ({ clientX, clientY }) => {
      const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [view.x + (x - left) / view.scale, view.y + (y - top) / view.scale];
    };
    if (controls?.matches(".controls[hidden]")) {
      controls.hidden = false;
      controls.addEventListener("click", ({ target }) => {
        const dot = view.scale === 1 && inner.querySelector(".dot.strong"); // what most people want to look at
        const x = dot ? dot.cx.baseVal.value : view.x + width / view.scale / 2;
        const y = dot ? dot.cy.baseVal.value : view.y + height / view.scale / 2;
        zoom(Number(target.dataset.zoom ?? 1), x, y);
      });
      plot.addEventListener("dblclick", (event) => zoom(1.6, ...place(event)));
    }

    const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    plot.append(tip);
    const hide = () => {
      tip.hidden = true;
      mark.remove();
    };
    const point = (event) => {
      const { clientX, clientY } = event;
      if (event.buttons && view.scale > 1) {
        const pixel = 1 / svg.getScreenCTM().a / view.scale;
        look(view.x - event.movementX * pixel, view.y - event.movementY * pixel, view.scale);
      }
      const found = nearest(inner, ...place(event), 40 / view.scale);
      if (!found) return hide();
      const { values } = cornersOf(found.path);
      const text = svg.dataset.tip.replace(/\{(\d)\}/g, (_, column) => values[column][found.at] ?? "–");
      tip.textContent = `${found.path.dataset.name}: ${text}`;
      tip.hidden = false;
      for (const [name, value] of [["class", "mark"], ["cx", found.a], ["cy", found.b]]) mark.setAttribute(name, value);
      inner.append(mark);
      const box = plot.getBoundingClientRect();
      const right = clientX - box.left > box.width / 2;
      tip.style.left = right ? "auto" : `${clientX - box.left + 14}px`;
      tip.style.right = right ? `${box.right - clientX + 14}px` : "auto";
      tip.style.top = `${Math.max(clientY - box.top - 14, 4)}px`;
    };
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", hide);
  }
})();
