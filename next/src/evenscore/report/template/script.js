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
  const nearest = (svg, x, y) => {
    let best = { distance: 40 };
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
    const tip = Object.assign(document.createElement("div"), { className: "tip", hidden: true });
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    mark.setAttribute("r", "6");
    plot.append(tip);
    const hide = () => {
      tip.hidden = true;
      mark.remove();
    };
    const point = ({ clientX, clientY }) => {
      const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
      const found = nearest(inner, x, y);
      if (!found) return hide();
      const { values } = cornersOf(found.path);
      const text = svg.dataset.tip.replace(/\{(\d)\}/g, (_, column) => values[column][found.at] ?? "–");
      tip.textContent = `${found.path.dataset.name}: ${text}`;
      tip.hidden = false;
      mark.setAttribute("class", "mark");
      mark.setAttribute("cx", found.a);
      mark.setAttribute("cy", found.b);
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
