import { OWN_KEYS, follow, h, uniqueId } from "./dom.js";

/** A number chosen by pointer, by keyboard or by typing it; always between `low` and `high`. */
function render({ model, el }) {
  const id = uniqueId("lab-slider");
  const range = h("input", { type: "range", id, step: 1, ...OWN_KEYS });
  const exact = h("input", { type: "number", step: 1, "aria-label": model.get("label") });
  el.append(
    h("div", { className: "lab lab-slider" }, h("label", { for: id }, model.get("label")), range, exact),
  );

  function choose(event) {
    const value = Number(event.target.value);
    if (event.target.value === "" || value < model.get("low") || value > model.get("high")) return;
    for (const input of [range, exact]) if (input !== event.target) input.value = String(value);
    model.set("value", value);
    model.save_changes();
  }
  range.addEventListener("input", choose);
  exact.addEventListener("input", choose);

  return follow(model, ["low", "high", "value"], () => {
    for (const input of [range, exact]) {
      input.min = String(model.get("low"));
      input.max = String(model.get("high"));
      if (document.activeElement !== exact || input !== exact) input.value = String(model.get("value"));
    }
  });
}

export default { render };
