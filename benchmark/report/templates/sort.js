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
  // A link into a folded section opens it.
  function unfold() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const folded = target && (target.querySelector("details.closed") || target.closest("details"));
    if (folded) { folded.open = true; target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", unfold);
  unfold();
  // On a phone the panels of a figure come below one another: each becomes a picture of its own.
  function stack(figure) {
    const parts = Array.from(figure.querySelectorAll("g[id*='-axes_'], g[id*='-legend_']"))
      .filter((part) => !part.parentNode.closest("g[id*='-axes_']"));
    if (!parts.length) return;
    const words = (part) => Array.from(part.querySelectorAll("g[id*='-text_']"));
    const rows = (part) => part.querySelectorAll("g[id*='-matplotlib.axis_']")[1];
    const frame = (part) => (part.querySelector("g[id*='-patch_']") || part).getBBox();
    const boxes = parts.map((part) => part.getBBox()), frames = parts.map(frame);
    const named = parts.map((part) => rows(part) && words(rows(part)).length > 0);
    function picture(part, left, right, box) {
      const view = figure.cloneNode(false);
      view.setAttribute("viewBox", [left - 4, box.y - 4, right - left + 8, box.height + 8].join(" "));
      view.setAttribute("class", "panel");
      // Words of a short legend are as large as those of the page, no larger.
      if (!rows(part)) view.style.maxWidth = 1.8 * (right - left + 8) + "px";
      view.append(part);
      figure.parentNode.append(view);
    }
    parts.forEach(function (part, at) {
      const box = boxes[at], right = box.x + box.width;
      let left = box.x;
      if (!rows(part)) {
        // A legend in two halves, or its words would be too small.
        // Words of one column start within a letter's width of each other.
        const starts = words(part).map((word) => word.getBBox().x).sort((a, b) => a - b)
          .filter((start, at, all) => !at || start - all[at - 1] > 8);
        const middle = starts.length > 2 ? starts[Math.ceil(starts.length / 2)] - 32 : right;
        if (middle < right) {
          // Halves of one width, so that their words have one size.
          const half = Math.max(middle - left, right - middle);
          picture(part.cloneNode(true), middle - half, middle, box);
          picture(part, middle, middle + half, box);
          return;
        }
      } else if (!named[at]) {
        // The names of shared rows stand at the first panel of a line.
        const first = parts.findIndex((_, one) => named[one] && Math.abs(frames[one].y - frames[at].y) < 1);
        if (first >= 0) {
          const names = rows(parts[first]).cloneNode(true);
          names.setAttribute("transform", "translate(" + (frames[at].x - frames[first].x) + ")");
          part.append(names);
          left = Math.min(left, frames[at].x - frames[first].x + boxes[first].x);
        }
      }
      picture(part, left, right, box);
    });
    figure.setAttribute("class", "emptied");
  }
  if (matchMedia("(max-width: 600px)").matches) document.querySelectorAll(".plot > svg").forEach(stack);
})();
