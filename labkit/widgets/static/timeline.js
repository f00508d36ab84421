import { OWN_KEYS, follow, h } from "./dom.js";

function item(words, { sequence, type, says, time, gap, details, is_new }) {
  return h(
    "li",
    { className: is_new ? "lab-event lab-event-new" : "lab-event", value: sequence },
    h("span", { className: "lab-event-number" }, String(sequence)),
    h(
      "div",
      {},
      h(
        "p",
        {},
        h("code", {}, type),
        says ? ` ${says}` : "",
        is_new ? h("span", { className: "lab-badge" }, words.new) : null,
      ),
      h("p", { className: "lab-event-when" }, [time, gap, details].filter(Boolean).join("  ·  ")),
    ),
  );
}

/** The event log, oldest first; the youngest stays in sight. */
function render({ model, el }) {
  const words = model.get("words");
  const list = h("ol", { className: "lab-events" });
  const notes = h("div");
  const before = h("p", { className: "lab-event-when" });
  const scroller = h(
    "div",
    { className: "lab-scroll", tabIndex: 0, ...OWN_KEYS, role: "group", "aria-label": words.title },
    before,
    list,
    notes,
  );
  el.append(
    h("div", { className: "lab lab-timeline" }, h("p", { className: "lab-caption" }, words.title), scroller),
  );

  return follow(model, ["view"], () => {
    const view = model.get("view");
    if (!view.rows) return;
    before.textContent = view.before;
    list.replaceChildren(...view.rows.map((one) => item(words, one)));
    notes.replaceChildren(
      ...view.notes.map(({ mark, text }) => h("p", { className: `lab-note lab-is-${mark}` }, text)),
    );
    scroller.scrollTop = scroller.scrollHeight;
  });
}

export default { render };
