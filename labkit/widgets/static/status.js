import { follow, h } from "./dom.js";

/** One sentence on what last happened, read out by screen readers when it changes. */
function render({ model, el }) {
  const line = h("p", { className: "lab lab-status", role: "status" });
  el.append(line);
  return follow(model, ["text"], () => {
    line.textContent = model.get("text");
  });
}

export default { render };
