import { OWN_KEYS, follow, h } from "./dom.js";

const SIGNS = { good: "✓", bad: "✗", quiet: "○" };

/** Each hint holds the next one: they can only be opened in order. */
function staged([first, ...rest]) {
  if (!first) return null;
  const [title, text] = first;
  return h("details", { className: "lab-hint" }, h("summary", {}, title), h("p", {}, text), staged(rest));
}

function row({ mark, verdict, title, rules, message, hints }) {
  return h(
    "li",
    { className: `lab-test lab-is-${mark}` },
    h(
      "p",
      {},
      h("span", { className: "lab-verdict" }, `${SIGNS[mark]} ${verdict}`),
      ` ${title} `,
      h("span", { className: "lab-rules" }, rules),
    ),
    message ? h("p", { className: "lab-message" }, message) : null,
    staged(hints),
  );
}

/** The first group stands open; the others open when asked. */
function group({ heading, rows }, at) {
  const list = h("ul", {}, ...rows.map(row));
  return at
    ? h("details", {}, h("summary", {}, heading), list)
    : h("section", {}, h("p", { className: "lab-caption" }, heading), list);
}

function render({ model, el }) {
  const words = model.get("words");
  const frame = h("div", { className: "lab lab-check", role: "group", "aria-label": words.title });
  el.append(frame);
  return follow(model, ["view"], () => {
    const { groups, note, diff } = model.get("view");
    if (!groups) return;
    frame.replaceChildren(
      ...(note ? [h("p", { className: "lab-note" }, note)] : []),
      ...groups.map(group),
      ...(diff
        ? [
            h(
              "details",
              {},
              h("summary", {}, words.diff),
              h("pre", { tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": words.diff }, diff),
            ),
          ]
        : []),
    );
  });
}

export default { render };
