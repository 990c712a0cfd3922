"use strict";
// Tables that sort and filter: all rows are data, of which only a few at a time are elements.
const MOST_PRINTED = 1000;
const FEW = 10;

class Rows {
  constructor(section) {
    this.section = section;
    this.rows = JSON.parse(document.getElementById(section.dataset.rows).textContent);
    this.atATime = Number(section.dataset.atATime);
    this.texts = null;
    this.order = this.rows.map((_, row) => row);
    this.first = 0;
    this.sortedBy = null;
    this.isDescending = false;
    this.body = section.querySelector("tbody");
    this.status = section.querySelector(".shown");
    this.filter = section.querySelector("input");
    this.headings = [...section.querySelectorAll("thead th")];
    this.previous = section.querySelector(".previous");
    this.next = section.querySelector(".next");
    this.filter.addEventListener("input", () => this.choose());
    this.previous.addEventListener("click", () => this.show(this.first - this.atATime));
    this.next.addEventListener("click", () => this.show(this.first + this.atATime));
    this.headings.forEach((heading, column) => this.makeSortable(heading, column));
    section.querySelector(".controls").hidden = this.rows.length <= FEW;
    this.choose();
  }

  makeSortable(heading, column) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      this.isDescending = this.sortedBy === column && !this.isDescending;
      this.sortedBy = column;
      this.headings.forEach((other) => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      this.choose();
    });
  }

  choose() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length && this.texts === null) {
      this.texts = this.rows.map((row) => row.map(textOf).join("\n").toLowerCase());
    }
    this.order = [];
    for (let row = 0; row < this.rows.length; row += 1) {
      if (words.every((word) => this.texts[row].includes(word))) this.order.push(row);
    }
    if (this.sortedBy !== null) {
      const keys = this.rows.map((row) => keyOf(row[this.sortedBy]));
      const sign = this.isDescending ? -1 : 1;
      this.order.sort((a, b) => compared(keys[a], keys[b], sign) || a - b);
    }
    this.show(0);
  }

  show(first, atATime = this.atATime) {
    const found = this.order.length;
    this.first = Math.max(0, Math.min(first, found - 1));
    const end = Math.min(this.first + atATime, found);
    this.body.replaceChildren(...this.order.slice(this.first, end).map((row) => this.element(this.rows[row])));
    const some = found === 1 ? "Row" : "Rows";
    const of = found === this.rows.length ? counted(found) : `${counted(found)} that match, of ${counted(this.rows.length)}`;
    this.status.textContent = found ? `${some} ${counted(this.first + 1)} to ${counted(end)} of ${of}` : `No row of ${counted(this.rows.length)} matches`;
    this.previous.disabled = this.first === 0;
    this.next.disabled = end === found;
  }

  element(row) {
    const line = document.createElement("tr");
    row.forEach((cell, column) => {
      const box = document.createElement("td");
      box.textContent = textOf(cell);
      if (this.headings[column].classList.contains("number")) box.className = "number";
      if (this.headings[column].textContent === "SEVERITY") box.className = `severity-${textOf(cell)}`;
      line.append(box);
    });
    return line;
  }
}

function textOf(cell) {
  return cell === null ? "-" : Array.isArray(cell) ? cell[1] : String(cell);
}

function keyOf(cell) {
  return Array.isArray(cell) ? cell[0] : cell;
}

// Nothing comes last in both directions; numbers before text.
function compared(a, b, sign) {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  if (typeof a !== typeof b) return sign * (typeof a === "number" ? -1 : 1);
  return sign * (a < b ? -1 : 1);
}

function counted(number) {
  return number.toLocaleString("en");
}

const tables = [...document.querySelectorAll("section[data-rows]")].map((section) => new Rows(section));
addEventListener("beforeprint", () => {
  tables.forEach((table) => table.show(0, MOST_PRINTED));
});
addEventListener("afterprint", () => {
  tables.forEach((table) => table.show(0));
});
for (const button of document.querySelectorAll(".copy")) {
  if (!navigator.clipboard) break;
  const code = button.parentElement.querySelector("code");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
    }
  });
}
