import { OWN_KEYS, follow, h } from "./dom.js";

function grid({ head, rows }, title) {
  const cells = ([store, ...marks]) =>
    h("tr", {}, h("th", { scope: "row" }, store), ...marks.map((mark) => h("td", {}, mark)));
  const table = h(
    "table",
    {},
    h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map(cells)),
  );
  const scrolled = { className: "lab-scroll", tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": title };
  return h("div", scrolled, table);
}

const named = ([name, text]) => h("li", {}, h("code", {}, name), ` ${text}`);

/** Which test stops which store; below it the first store that got through, explained. */
function render({ model, el }) {
  const words = model.get("words");
  const frame = h("div", { className: "lab lab-picture lab-gate", role: "group", "aria-label": words.title });
  el.append(frame);
  return follow(model, ["view"], () => {
    const view = model.get("view");
    if (!view.message) return;
    const shown = [];
    if (view.rows.length) {
      shown.push(grid(view, words.title), h("p", {}, words.key), h("ol", {}, ...view.tests.map(named)));
    }
    if (view.explained) {
      shown.push(h("p", {}, view.explained), h("ul", {}, ...view.rules.map((rule) => h("li", {}, rule))));
    }
    if (view.wrong.length) shown.push(h("ul", {}, ...view.wrong.map(named)));
    frame.replaceChildren(...shown);
  });
}

export default { render };
