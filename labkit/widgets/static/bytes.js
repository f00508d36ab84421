import { follow, h } from "./dom.js";

const MARKS = ["good", "torn", "damaged", "unread", "changed"];

function cell(column, [hex, glyph, name, mark, changed], index) {
  const classes = ["lab-cell", `lab-${mark}`, changed ? "lab-changed" : ""];
  return h(
    "span",
    { className: classes.filter(Boolean).join(" "), title: name, "data-cell": index },
    column === "hex" ? hex : glyph,
  );
}

function row(words, [offset, line, cells], index) {
  const separated = cells.flatMap((one, at) => [at ? " " : null, cell("hex", one, `${index}.${at}`)]);
  return h(
    "tr",
    { "data-offset": offset, className: line ? "lab-line-start" : "" },
    h("td", { className: "lab-line" }, line ? words.line.replace("{line}", line) : ""),
    h("th", { scope: "row" }, String(offset)),
    h("td", { className: "lab-hex" }, ...separated),
    h("td", { className: "lab-text" }, ...cells.map((one, at) => cell("text", one, `${index}.${at}`))),
  );
}

function legend(counts) {
  const items = MARKS.filter((mark) => counts[mark]).map((mark) =>
    h("li", { "data-mark": mark }, h("span", { className: `lab-swatch lab-${mark}`, "aria-hidden": "true" }, "Ab"), ` ${counts[mark]}`),
  );
  return h("ul", { className: "lab-legend" }, ...items);
}

/** Light both columns of the character under the pointer. */
function linkColumns(table) {
  let lit = [];
  table.addEventListener("pointerover", ({ target }) => {
    const index = target instanceof Element ? target.closest("[data-cell]")?.getAttribute("data-cell") : null;
    for (const one of lit) one.classList.remove("lab-lit");
    lit = index ? [...table.querySelectorAll(`[data-cell="${index}"]`)] : [];
    for (const one of lit) one.classList.add("lab-lit");
  });
}

/** Keep the byte of interest in sight without moving the page. */
function reveal(scroller, focus) {
  const rows = [...scroller.querySelectorAll("tr[data-offset]")];
  const at = rows.findLast((one) => Number(one.dataset.offset) <= focus);
  if (!at) return;
  const below = at.offsetTop + at.offsetHeight - scroller.clientHeight;
  if (at.offsetTop < scroller.scrollTop + 40 || below > scroller.scrollTop) {
    scroller.scrollTop = Math.max(0, at.offsetTop - scroller.clientHeight * 0.66);
  }
}

function render({ model, el }) {
  const body = h("tbody");
  const words = model.get("words");
  const table = h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...["", words.offset, words.hex, words.text].map((one) => h(one ? "th" : "td", one ? { scope: "col" } : {}, one)))),
    body,
  );
  const scroller = h("div", { className: "lab-scroll", tabIndex: 0, role: "region", "aria-label": words.title }, table);
  const caption = h("figcaption");
  const figure = h("figure", { className: "lab lab-bytes" }, caption, scroller, h("ul"));
  linkColumns(table);
  el.append(figure);

  return follow(model, ["view"], () => {
    const view = model.get("view");
    if (!view.rows) return;
    caption.textContent = view.caption;
    body.replaceChildren(...view.rows.map((one, index) => row(words, one, index)));
    scroller.hidden = view.rows.length === 0;
    figure.lastChild.replaceWith(legend(view.counts));
    figure.dataset.size = view.size;
    reveal(scroller, view.focus);
  });
}

export default { render };
