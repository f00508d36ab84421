import { OWN_KEYS, follow, h } from "./dom.js";

const SIGNS = { there: "✓", absent: "–", damaged: "✗" };

/** Which task, where its file is, and which of its records stand on disk. */
function render({ model, el }) {
  const words = model.get("words");
  const tasks = h("div", { className: "lab-tasks-row", role: "group", "aria-label": words.task });
  const facts = h("dl", { className: "lab-facts" });
  const head = h("div", { className: "lab lab-task-head" }, tasks, facts);
  el.append(head);

  function choose(name) {
    model.set("chosen", name);
    model.save_changes();
  }
  const button = (name, shown) =>
    h(
      "button",
      { type: "button", "aria-pressed": String(name === shown), onclick: () => choose(name), ...OWN_KEYS },
      name,
    );
  const record = ([name, how, said]) =>
    h(
      "li",
      { className: `lab-record-${how}` },
      h("span", { "aria-hidden": "true" }, `${SIGNS[how]} `),
      name,
      h("span", { className: "lab-unseen" }, ` ${said}`),
    );

  return follow(model, ["view"], () => {
    const view = model.get("view");
    head.hidden = !view.names?.length;
    if (head.hidden) return;
    const focused = tasks.contains(document.activeElement) ? document.activeElement.textContent : null;
    tasks.replaceChildren(...view.names.map((name) => button(name, view.shown)), view.more);
    if (focused) [...tasks.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
    facts.replaceChildren(
      h("div", {}, h("dt", {}, words.queue), h("dd", {}, view.places)),
      h("div", {}, h("dt", {}, words.records), h("dd", {}, h("ul", {}, ...view.records.map(record)))),
    );
  });
}

export default { render };
