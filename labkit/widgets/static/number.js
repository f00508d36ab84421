import { follow, h, uniqueId } from "./dom.js";

/** A number that is typed, between `low` and `high`. */
function render({ model, el }) {
  const id = uniqueId("lab-number");
  const input = h("input", { type: "number", id, step: 1 });
  el.append(h("div", { className: "lab lab-number" }, h("label", { for: id }, model.get("label")), input));

  input.addEventListener("change", () => {
    const wanted = Math.round(Number(input.value));
    const value = Math.min(model.get("high"), Math.max(model.get("low"), wanted));
    input.value = String(value);
    model.set("value", value);
    model.save_changes();
  });

  return follow(model, ["low", "high", "value"], () => {
    input.min = String(model.get("low"));
    input.max = String(model.get("high"));
    input.value = String(model.get("value"));
  });
}

export default { render };
