import { OWN_KEYS, follow, h } from "./dom.js";

const COLUMNS = ["what", "exit", "decision", "cause", "message"];

/** What was changed, and what the runner said to it: a table to read and to scroll. */
function render({ model, el }) {
  const words = model.get("words");
  const body = h("tbody");
  const head = h("thead", {}, h("tr", {}, ...COLUMNS.map((name) => h("th", { scope: "col" }, words[name]))));
  const frame = h(
    "div",
    {
      className: "lab-scroll lab-refusals",
      tabIndex: 0,
      ...OWN_KEYS,
      role: "group",
      "aria-label": words.title,
    },
    h("table", {}, head, body),
  );
  el.append(h("figure", { className: "lab lab-picture" }, h("figcaption", {}, words.title), frame));
  const row = (one) =>
    h(
      "tr",
      { className: `lab-is-${one.mark}` },
      ...COLUMNS.map((name, at) => h(at ? "td" : "th", at ? {} : { scope: "row" }, one[name])),
    );

  return follow(model, ["view"], () => body.replaceChildren(...model.get("view").rows.map(row)));
}

export default { render };
