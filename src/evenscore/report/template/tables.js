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
