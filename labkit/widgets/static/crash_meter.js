import { follow, h } from "./dom.js";

/** How far an exploration has come: one bar, a few figures, and for what they were found. */
function render({ model, el }) {
  const words = model.get("words");
  const caption = h("p", { className: "lab-caption" });
  const bar = h("progress", { max: 1, "aria-label": words.progress });
  const figures = h("dl", { className: "lab-figures" });
  const note = h("p", { className: "lab-meter-note" });
  el.append(h("div", { className: "lab lab-meter" }, caption, bar, figures, note));

  return follow(model, ["view"], () => {
    const view = model.get("view");
    caption.textContent = view.caption;
    if (view.share === null) bar.removeAttribute("value");
    else bar.value = view.share;
    figures.replaceChildren(
      ...view.figures.map(([name, label, value, mark]) =>
        h("div", { "data-figure": name, className: `lab-is-${mark}` }, h("dt", {}, label), h("dd", {}, value)),
      ),
    );
    note.textContent = view.note;
  });
}

export default { render };
