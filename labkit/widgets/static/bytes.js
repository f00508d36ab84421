import { OWN_KEYS, follow, h } from "./dom.js";

const MARKS = ["good", "torn", "damaged", "unread", "changed"];

function run(text, { mark, changed, hex, name }) {
  const whole = name && hex.length > 2 ? " lab-whole" : "";
  return h("span", { className: `lab-${mark}${changed ? " lab-changed" : ""}${whole}`, title: name }, text);
}

function row(words, [offset, line, runs]) {
  const named = runs.map(([mark, changed, hex, text, name]) => ({ mark, changed, hex, text, name }));
  return h(
    "tr",
    { "data-offset": offset, className: line ? "lab-line-start" : "" },
    h("td", { className: "lab-line" }, line ? words.line.replace("{line}", line) : ""),
    h("th", { scope: "row" }, String(offset)),
    h(
      "td",
      { className: "lab-hex" },
      ...named.flatMap((one, at) => (at ? [" ", run(one.hex, one)] : [run(one.hex, one)])),
    ),
    h("td", { className: "lab-text" }, ...named.map((one) => run(one.text, one))),
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
    h(
      "li",
      { "data-mark": mark },
      h("span", { className: `lab-swatch lab-${mark}`, "aria-hidden": "true" }, "7B"),
      ` ${counts[mark]}`,
    ),
  );
  return h("ul", { className: "lab-legend" }, ...items);
}

/** Keep the byte of interest in sight without moving the page. */
function reveal(scroller, rows, focus) {
  const at = [...rows].findLast((one) => Number(one.dataset.offset) <= focus);
  if (!at) return;
  const hidden =
    at.offsetTop < scroller.scrollTop + 40 ||
    at.offsetTop + at.offsetHeight > scroller.scrollTop + scroller.clientHeight;
  if (hidden) scroller.scrollTop = Math.max(0, at.offsetTop - scroller.clientHeight * 0.66);
}

function render({ model, el }) {
  const words = model.get("words");
  const body = h("tbody");
  const head = [words.offset, words.hex, words.text].map((one) => h("th", { scope: "col" }, one));
  const table = h("table", {}, h("thead", {}, h("tr", {}, h("td"), ...head)), body);
  const scroller = h(
    "div",
    { className: "lab-scroll", tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": words.title },
    table,
  );
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
