// Sorting and filtering of tables; the page is complete without it.
"use strict";
(function () {
  function key(cell) {
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    return cell.textContent.trim().toLowerCase();
  }
  function compare(a, b) {
    const numbers = [typeof a === "number", typeof b === "number"];
    if (numbers[0] && numbers[1]) return a - b;
    // Cells without a number ("missing") stand after those with one.
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  function sort(table, head, column) {
    const descending = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach((th) => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    for (const body of table.tBodies) {
      const rows = Array.from(body.rows).filter((row) => !row.classList.contains("section"));
      rows.sort((a, b) => compare(key(a.cells[column]), key(b.cells[column])) * (descending ? -1 : 1));
      rows.forEach((row) => body.appendChild(row));
    }
  }
  function addFilter(table) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    label.className = "filter";
    label.textContent = "Filter rows";
    input.type = "search";
    label.appendChild(input);
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    label.appendChild(status);
    table.closest(".scroll").before(label);
    input.addEventListener("input", function () {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let total = 0, left = 0;
      for (const body of table.tBodies) {
        const title = body.querySelector(".section");
        const head = title ? title.textContent.toLowerCase() : "";
        let shown = 0;
        for (const row of body.rows) {
          if (row === title) continue;
          const text = head + " " + row.textContent.toLowerCase();
          row.hidden = !words.every((word) => text.includes(word));
          shown += row.hidden ? 0 : 1;
          total += 1;
        }
        body.hidden = shown === 0;
        left += shown;
      }
      status.textContent = words.length ? " " + left + " of " + total + " rows" : "";
    });
  }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    const last = table.tHead.rows[table.tHead.rows.length - 1];
    Array.from(last.cells).forEach(function (head, column) {
      if (head.tagName !== "TH") return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.appendChild(button);
      button.addEventListener("click", () => sort(table, head, column));
    });
    if (table.querySelectorAll("tbody tr:not(.section)").length > 6) addFilter(table);
  });
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details").forEach((element) => { element.open = true; });
  });
})();
