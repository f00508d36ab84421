import { follow, h } from "./dom.js";

function card({ who, mark, headline, details }) {
  return h(
    "section",
    { className: `lab-card lab-is-${mark}` },
    h("p", { className: "lab-caption" }, who),
    h("p", { className: "lab-headline" }, headline),
    ...details.map((one) => h("p", {}, one)),
  );
}

function tasks(words, { rows, sentence }) {
  if (!rows.length) return h("p", {}, sentence);
  const head = [words.name, words.status, words.note].map((one) => h("th", { scope: "col" }, one));
  const body = rows.map((cells) =>
    h("tr", {}, ...cells.map((one, at) => h(at ? "td" : "th", at ? {} : { scope: "row" }, one))),
  );
  return h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body));
}

function render({ model, el }) {
  const words = model.get("words");
  const content = h("div", { className: "lab-panel-content" });
  el.append(h("div", { className: "lab lab-panel", role: "group", "aria-label": words.title }, content));

  return follow(model, ["view"], () => {
    const view = model.get("view");
    if (!view.cards) return;
    content.replaceChildren(
      h("div", { className: "lab-cards" }, ...view.cards.map(card)),
      ...view.lines.map(({ mark, text }) => h("p", { className: `lab-note lab-is-${mark}` }, text)),
      view.tasks
        ? h(
            "section",
            { className: "lab-tasks" },
            h("p", { className: "lab-caption" }, words.tasks),
            tasks(words, view.tasks),
          )
        : "",
    );
  });
}

export default { render };
