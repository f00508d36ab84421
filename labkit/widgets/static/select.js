import { OWN_KEYS, follow, h, uniqueId } from "./dom.js";

/** One of many names, in groups; a name may be a pair of what it stands for and how it reads. */
function render({ model, el }) {
  const id = uniqueId("lab-select");
  const option = ([value, text = value]) => h("option", { value }, text);
  const groups = model
    .get("groups")
    .map(([label, names]) => h("optgroup", { label }, ...names.map((name) => option([name].flat()))));
  const select = h("select", { id, ...OWN_KEYS }, ...groups);
  el.append(h("div", { className: "lab lab-select" }, h("label", { for: id }, model.get("label")), select));
  select.addEventListener("change", () => {
    model.set("value", select.value);
    model.save_changes();
  });
  return follow(model, ["value"], () => {
    select.value = model.get("value");
  });
}

export default { render };
