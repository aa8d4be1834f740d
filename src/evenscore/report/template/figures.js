// What is drawn: traces and axes for Plotly, from the numbers of the page and the colours of its style sheet.
const figures = (() => {
  "use strict";
  const data = JSON.parse(document.getElementById("plot-data").textContent);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // Plotly reads some markup, templates and formulas in labels; a name has none of them.
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "%": "&#37;", "{": "&#123;", "$": "&#36;" };
  const unseen = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
  const literal = (name) => {
    const text = name.replace(unseen, "\ufffd");
    return (text.length > 60 ? `${text.slice(0, 59)}…` : text).replace(/[&<>%{$]/g, (c) => marks[c]);
  };

  const percent = (rate) => {
    const value = 100 * rate;
    return `${value >= 0.1 || value === 0 ? value.toFixed(2) : value.toPrecision(2)} %`;
  };
  const short = (value) => (value === null ? "" : Number(value).toFixed(3));
  const shown = (kind, place) => {
    const box = document.querySelector(`.legend[data-for="${kind}"] input[value="${place}"]`);
    return box === null || box.checked;
  };

  const axis = (extra) => ({
    color: colour("muted"),
    gridcolor: colour("grid"),
    linecolor: colour("line"),
    zerolinecolor: colour("line"),
    zeroline: false,
    showline: true,
    ticks: "outside",
    ticklen: 4,
    tickcolor: colour("line"),
    ...extra,
    title: extra.title ? { text: extra.title, font: { size: 13 }, standoff: 10 } : { text: "" },
  });
  const layout = (extra) => ({
    paper_bgcolor: colour("ground"),
    plot_bgcolor: colour("ground"),
    font: { family: colour("sans").replaceAll('"', ""), size: 12, color: colour("text") },
    hoverlabel: {
      bgcolor: colour("surface"),
      bordercolor: colour("line"),
      font: { color: colour("text"), size: 13 },
      align: "left",
    },
    showlegend: false,
    hovermode: "closest",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    ...extra,
  });

  const line = (system, extra = {}) => ({
    color: colour(`system-${system.colour}`),
    width: system.best ? 3 : 1.8,
    dash: system.dash || "solid",
    ...extra,
  });

  const span = ([low, high]) => high - low;
  const edges = (width) => (width < 480 ? { l: 54, r: 12, t: 14, b: 50 } : { l: 64, r: 20, t: 20, b: 56 });

  // Ticks at round percentages, the more important ones first, as many as there is room for.
  const ticks = (range, pixels, room) => {
    const { places, labels, usual } = data.det.ticks;
    const kept = [];
    places.forEach((place, i) => {
      if (i >= usual && kept.length >= 5) return; // the finer ones are for a closer look
      const inside = place >= range[0] && place <= range[1];
      const free = kept.every((other) => Math.abs(place - places[other]) * pixels >= room * span(range));
      if (inside && free) kept.push(i);
    });
    return { tickmode: "array", tickvals: kept.map((i) => places[i]), ticktext: kept.map((i) => labels[i]) };
  };

  // One unit is as long on both axes; the height follows from that.
  const det = (width, view = { xaxis: data.det.x_range, yaxis: data.det.y_range }) => {
    const margin = edges(width);
    const across = width - margin.l - margin.r;
    const down = (across * span(data.det.y_range)) / span(data.det.x_range);
    const curves = data.systems.flatMap((system, place) => {
      const visible = shown("det", place);
      const name = literal(system.name);
      const { x, y, p_fa, p_miss, threshold, eer, eer_place } = system.det;
      const common = { type: "scatter", visible, meta: place, hoverinfo: "text" };
      const curve = {
        ...common,
        mode: "lines",
        x,
        y,
        line: line(system),
        hovertext: x.map((_, i) => {
          const at = threshold[i] === null ? "" : `<br>threshold ${short(threshold[i])}`;
          return `${name}<br>misses ${percent(p_miss[i])}<br>false alarms ${percent(p_fa[i])}${at}`;
        }),
      };
      const dot = {
        ...common,
        mode: "markers",
        x: [eer_place],
        y: [eer_place],
        marker: { color: colour(`system-${system.colour}`), size: 9, line: { color: colour("ground"), width: 1.5 } },
        hovertext: [`${name}<br>equal error rate ${percent(eer)}`],
      };
      return [curve, dot];
    });
    const thin = { type: "line", line: { color: colour("muted"), width: 1, dash: "dot" }, layer: "below" };
    const [few_fa, few_misses] = data.det.rule_of_30;
    const shapes = [];
    if (few_fa !== null) shapes.push({ ...thin, x0: few_fa, x1: few_fa, yref: "y domain", y0: 0, y1: 1 });
    if (few_misses !== null) shapes.push({ ...thin, y0: few_misses, y1: few_misses, xref: "x domain", x0: 0, x1: 1 });
    shapes.push({ ...thin, line: { color: colour("grid"), width: 1 }, x0: -8, y0: -8, x1: 8, y1: 8 });
    return {
      traces: curves,
      layout: layout({
        margin,
        height: down + margin.t + margin.b,
        xaxis: axis({ title: "False-alarm rate (%)", tickangle: 0, range: [...view.xaxis], ...ticks(view.xaxis, across, 40) }),
        yaxis: axis({ title: "Miss rate (%)", range: [...view.yaxis], ...ticks(view.yaxis, down, 24) }),
        shapes,
      }),
    };
  };

  const bayes = (width) => {
    const { log_odds, highest, points } = data.bayes;
    const traces = data.systems.flatMap((system, place) =>
      [
        ["actual", "solid"],
        ["minimum", "dash"],
      ].map(([rate, dash]) => ({
        type: "scatter",
        mode: "lines",
        visible: shown("bayes", place),
        meta: place,
        x: log_odds,
        y: system.bayes[rate],
        line: line(system, { dash, width: dash === "solid" ? (system.best ? 3 : 2) : 1.5 }),
        hoverinfo: "text",
        hovertext: log_odds.map(
          (at, i) =>
            `${literal(system.name)}, ${rate}<br>prior ${(100 / (1 + Math.exp(-at))).toPrecision(3)} &#37;` +
            ` (log-odds ${at})<br>Bayes error ${short(system.bayes[rate][i])}`,
        ),
      })),
    );
    const thin = { type: "line", layer: "below", line: { color: colour("muted"), width: 1, dash: "dot" } };
    const shapes = points.map((point) => ({ ...thin, x0: point, x1: point, yref: "paper", y0: 0, y1: 1 }));
    shapes.push({ ...thin, xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1 });
    return {
      traces,
      layout: layout({
        margin: edges(width),
        xaxis: axis({ title: "Prior log-odds of a target", range: [log_odds[0], log_odds.at(-1)] }),
        yaxis: axis({ title: "Normalized Bayes error rate", range: [0, highest] }),
        shapes,
      }),
    };
  };

  // Two panels side by side, one above the other on a narrow screen.
  const histograms = (width) => {
    const chosen = Number(document.getElementById("histogram-system").value);
    const raw = Math.max(0, data.systems.findIndex((system) => system.raw));
    const panels = [data.systems[raw], data.systems[chosen]].map((system, k) => ({ system, axis: k ? "2" : "" }));
    const traces = panels.flatMap(({ system, axis: number }) =>
      ["nontarget", "target"].map((side) => {
        const { edges, [side]: density } = system.histogram;
        const title = side === "target" ? "targets" : "non-targets";
        return {
          type: "scatter",
          mode: "lines",
          line: { shape: "hv", color: colour(side), width: 1.5, dash: side === "target" ? "solid" : "dot" },
          fill: "tozeroy",
          fillcolor: `${colour(side)}2e`,
          x: edges,
          y: [...density, 0],
          xaxis: `x${number}`,
          yaxis: `y${number}`,
          hoverinfo: "text",
          hovertext: density.map(
            (value, i) => `${title}, ${literal(system.name)}<br>${short(edges[i])} to ${short(edges[i + 1])}<br>density ${short(value)}`,
          ),
        };
      }),
    );
    const stacked = width < 560;
    const [first, second] = stacked ? [[0, 1], [0, 1]] : [[0, 0.46], [0.54, 1]];
    const [upper, lower] = stacked ? [[0.62, 1], [0, 0.38]] : [[0, 1], [0, 1]];
    const range = ({ system }) => [system.histogram.edges[0], system.histogram.edges.at(-1)];
    const headings = panels.map(({ system }, k) => ({
      text: k ? `after: ${literal(system.name)}` : `before: ${literal(system.name)}`,
      showarrow: false,
      xref: "paper",
      yref: "paper",
      xanchor: "left",
      yanchor: "bottom",
      x: k ? second[0] : 0,
      y: k ? lower[1] : 1,
      font: { size: 13, color: colour("text") },
    }));
    const keys = ["target", "nontarget"].map((side, k) => ({
      text: side === "target" ? "— targets" : "··· non-targets",
      showarrow: false,
      xref: "paper",
      yref: "paper",
      xanchor: "right",
      yanchor: "top",
      x: first[1],
      y: 1 - (k * 20) / (stacked ? 400 : 280),
      font: { size: 12, color: colour(side) },
    }));
    return {
      traces,
      layout: layout({
        xaxis: axis({ title: "score", domain: first, range: range(panels[0]) }),
        xaxis2: axis({ title: "score", domain: second, range: range(panels[1]), anchor: "y2" }),
        yaxis: axis({ title: "density", domain: upper, rangemode: "tozero" }),
        yaxis2: axis({ title: stacked ? "density" : "", domain: lower, rangemode: "tozero", anchor: "x2" }),
        annotations: [...headings, ...keys],
        margin: { ...edges(width), t: 36 },
      }),
    };
  };

  const room = (heights) => {
    const low = Math.min(0, ...heights);
    const high = Math.max(0, ...heights);
    const space = 0.18 * (high - low) + 0.05; // for the numbers beside short bars
    return [low - space, high + space];
  };
  const contributions = (width) => {
    const { features, values, totals } = data.contributions;
    const chosen = Number(document.getElementById("contribution-trial").value);
    const heights = values[chosen];
    const traces = [
      {
        type: "bar",
        orientation: "h",
        y: features.map((_, i) => i),
        x: heights,
        marker: { color: heights.map((value) => colour(value < 0 ? "nontarget" : "target")) },
        hoverinfo: "text",
        hovertext: heights.map((value, i) => `${literal(features[i])}<br>${value > 0 ? "+" : ""}${short(value)}`),
        text: heights.map((value) => `${value > 0 ? "+" : ""}${short(value)}`),
        textposition: "auto",
        cliponaxis: false,
      },
    ];
    return {
      traces,
      layout: layout({
        margin: edges(width),
        xaxis: axis({ title: `added to the LLR, sum ${short(totals[chosen])}`, zeroline: true, range: room(heights) }),
        yaxis: axis({
          title: "",
          tickmode: "array",
          tickvals: features.map((_, i) => i),
          ticktext: features.map(literal),
          autorange: "reversed",
          automargin: true,
        }),
      }),
    };
  };

  return { det, bayes, histograms, contributions };
})();
