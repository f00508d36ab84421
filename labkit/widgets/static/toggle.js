import { OWN_KEYS, follow, h } from "./dom.js";

/** Something that is on or off. */
function render({ model, el }) {
  const box = h("input", { type: "checkbox", ...OWN_KEYS });
  el.append(h("div", { className: "lab lab-toggle" }, h("label", {}, box, ` ${model.get("label")}`)));
  box.addEventListener("change", () => {
    model.set("value", box.checked);
    model.save_changes();
  });
  return follow(model, ["value"], () => {
    box.checked = model.get("value");
  });
}

export default { render };
