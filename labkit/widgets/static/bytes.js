import { OWN_KEYS, follow, h } from "./dom.js";

const MARKS = ["good", "torn", "damaged", "unread", "changed"];

/** Neighbours that look alike become one element: a redraw must keep up with a slider. */
function runs(cells, text, between) {
  const made = [];
  let last = null;
  for (const [hex, glyph, name, mark, changed] of cells) {
    const whole = hex.length > 2;
    const className = `lab-${mark}${changed ? " lab-changed" : ""}${whole ? " lab-whole" : ""}`;
    if (last && !whole && last.className === className) {
      last.append(between, text(hex, glyph));
      continue;
    }
    last = h("span", { className, title: name }, text(hex, glyph));
    made.push(made.length ? between : "", last);
  }
  return made;
}

function row(words, [offset, line, cells]) {
  return h(
    "tr",
    { "data-offset": offset, className: line ? "lab-line-start" : "" },
    h("td", { className: "lab-line" }, line ? words.line.replace("{line}", line) : ""),
    h("th", { scope: "row" }, String(offset)),
    h("td", { className: "lab-hex" }, ...runs(cells, (hex) => hex, " ")),
    h("td", { className: "lab-text" }, ...runs(cells, (_hex, glyph) => glyph, "")),
  );
}

/** Replace the rows that differ, and only these. */
function update(body, words, rows) {
  rows.forEach((one, at) => {
    const key = JSON.stringify(one);
    const before = body.rows[at];
    if (before?.drawn === key) return;
    const made = row(words, one);
    made.drawn = key;
    if (before) before.replaceWith(made);
    else body.append(made);
  });
  while (body.rows.length > rows.length) body.lastChild.remove();
}

function legend(counts) {
  const items = MARKS.filter((mark) => counts[mark]).map((mark) =>
    h("li", { "data-mark": mark }, h("span", { className: `lab-swatch lab-${mark}`, "aria-hidden": "true" }, "7B"), ` ${counts[mark]}`),
  );
  return h("ul", { className: "lab-legend" }, ...items);
}

/** Keep the byte of interest in sight without moving the page. */
function reveal(scroller, rows, focus) {
  const at = [...rows].findLast((one) => Number(one.dataset.offset) <= focus);
  if (!at) return;
  const hidden = at.offsetTop < scroller.scrollTop + 40 || at.offsetTop + at.offsetHeight > scroller.scrollTop + scroller.clientHeight;
  if (hidden) scroller.scrollTop = Math.max(0, at.offsetTop - scroller.clientHeight * 0.66);
}

function render({ model, el }) {
  const words = model.get("words");
  const body = h("tbody");
  const head = [words.offset, words.hex, words.text].map((one) => h("th", { scope: "col" }, one));
  const table = h("table", {}, h("thead", {}, h("tr", {}, h("td"), ...head)), body);
  const scroller = h("div", { className: "lab-scroll", tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": words.title }, table);
  const caption = h("figcaption");
  const figure = h("figure", { className: "lab lab-bytes" }, caption, scroller, h("ul"));
  el.append(figure);

  return follow(model, ["view"], () => {
    const view = model.get("view");
    if (!view.rows) return;
    caption.textContent = view.caption;
    update(body, words, view.rows);
    scroller.hidden = view.rows.length === 0;
    figure.lastChild.replaceWith(legend(view.counts));
    figure.dataset.size = view.size;
    reveal(scroller, body.rows, view.focus);
  });
}

export default { render };
