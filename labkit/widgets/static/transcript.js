import { OWN_KEYS, follow, h } from "./dom.js";

/** What a command prints, line by line. Lines that stand already are left alone, so that a screen reader says only new ones. */
function render({ model, el }) {
  const words = model.get("words");
  const log = h("div", {
    className: "lab-transcript",
    role: "log",
    tabIndex: 0,
    ...OWN_KEYS,
    "aria-label": words.title,
  });
  const dropped = h("p", { className: "lab-event-when" });
  el.append(h("div", { className: "lab" }, h("p", { className: "lab-caption" }, words.title), log));
  let drawn = { run: null, first: 0, count: 0 };

  return follow(model, ["view"], () => {
    const { run, lines, first, note } = model.get("view");
    if (!lines) return;
    if (run !== drawn.run || first !== drawn.first || lines.length < drawn.count) {
      dropped.textContent = note;
      log.replaceChildren(...(note ? [dropped] : []));
      drawn = { run, first, count: 0 };
    }
    log.append(
      ...lines
        .slice(drawn.count)
        .map(([stream, text]) => h("p", { className: `lab-said lab-said-${stream}` }, text || " ")),
    );
    drawn.count = lines.length;
    log.dataset.run = run;
    log.scrollTop = log.scrollHeight;
  });
}

export default { render };
