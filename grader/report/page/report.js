"use strict";
/* The report's one script. What is chosen stands in the address after #: a link shows the same, nothing is stored.

   lang, lesson, sort ("points:down"), find, verdict   how the class is shown
   student, test                                       whose page is open, and which test was asked for          */
(() => {
  const report = JSON.parse(document.getElementById("report").textContent);
  const byKey = new Map(report.people.map((person) => [person.key, person]));
  const place = (id) => document.getElementById(id);
  const order = new Intl.Collator(["zh-u-co-pinyin", "en"], { numeric: true });
  const state = {};
  let rows = new Map();

  // --- Words and elements ---

  const pick = (text) => text[state.lang === "zh" ? 0 : 1];
  const say = (key, ...values) => values.reduce((said, value) => said.replace("{}", value), pick(report.words[key]));
  const text = (number) => (number ? pick(report.texts[number - 1]) : "");
  const verdict = (word) => pick(report.verdicts[word] ?? [word, word]);
  const reason = (mark) => (mark ? verdict(mark) : say("pass"));
  const looks = { "": "is-pass", complete: "is-pass", ok: "is-ok", fail: "is-fail", "not-implemented": "is-todo" };
  const look = (mark) => looks[mark] ?? "is-odd";

  /** Make an element. Whatever is shown goes in as text, never as markup. */
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== false) element.setAttribute(key, value);
    }
    element.append(...children.filter((child) => child !== "" && child !== undefined));
    return element;
  }

  /** Name values, one a line, or inline; what is not known is not named. */
  function facts(pairs, kind = "facts") {
    const known = pairs.filter(([, value]) => value !== "" && value != null);
    const entry = ([key, value]) => make("div", {}, make("dt", {}, key), make("dd", {}, value));
    return make("dl", { class: kind }, ...known.map(entry));
  }

  const list = (items) => make("ul", { class: "list" }, ...items);
  const named = (name) => make("bdi", {}, name);

  // --- State: the address is the only place where it is kept ---

  const defaults = {
    lang: report.language, lesson: report.lessons[0] ?? "", sort: "student:up", find: "", verdict: "",
    student: "", test: "",
  };

  function readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(defaults)) state[key] = asked.get(key) ?? value;
    if (!["zh", "en"].includes(state.lang)) state.lang = defaults.lang;
    if (!report.lessons.includes(state.lesson)) state.lesson = defaults.lesson;
  }

  function address(changes) {
    const next = { ...state, ...changes };
    const told = Object.entries(next).filter(([key, value]) => value !== defaults[key]);
    return `#${new URLSearchParams(told)}`;
  }

  /** Show something else of the same class: no new step for the browser's Back. */
  function change(changes) {
    try {
      history.replaceState(null, "", address(changes));
    } catch {
      // Safari refuses more than a hundred of these in half a minute: the address is late then, the page is not.
    }
    Object.assign(state, changes);
  }

  // --- The class ---

  const lessonOf = (person) => person.lessons[state.lesson];
  const comparable = (text) => text.normalize("NFKC").toLocaleLowerCase();
  const wordOf = (person) => lessonOf(person)?.verdict ?? person.verdict;
  const share = ([some, all]) => (all ? some / all : 0);
  const columns = [
    { key: "student", value: (person) => person.name },
    { key: "verdict", value: (person) => report.verdictOrder.indexOf(wordOf(person)) },
    { key: "required", value: (person) => share(lessonOf(person)?.required ?? [-1, 1]) },
    { key: "extended", value: (person) => share(lessonOf(person)?.extended ?? [-1, 1]) },
    { key: "points", value: (person) => lessonOf(person)?.points[0] ?? -1 },
  ];

  function buildMatrix() {
    const tests = report.tests[state.lesson] ?? [];
    const firstExtended = tests.findIndex((test) => !test.required);
    const table = place("matrix");
    table.style.setProperty("--tests", tests.length || 1);
    table.tHead.replaceChildren(heading(tests, firstExtended), missedBy(tests, firstExtended));
    rows = new Map(report.people.map((person) => [person, row(person, tests.length, firstExtended)]));
  }

  function heading(tests, firstExtended) {
    const head = (key, label, attributes) => {
      const button = make("button", { type: "button", tabindex: -1 }, label);
      return make("th", { role: "columnheader", scope: "col", "data-key": key, ...attributes }, button);
    };
    const ofTest = (test, at) => {
      const kind = at === firstExtended ? "test first-extended" : "test";
      const short = test.id.slice(state.lesson.length + 1);
      return head(test.id, short, { class: kind, title: `${test.id} ${pick(test.title)}` });
    };
    return make("tr", { role: "row" }, ...columns.map(({ key }) => head(key, say(key))), ...tests.map(ofTest));
  }

  function missedBy(tests, firstExtended) {
    const counted = (_, at) => {
      const count = report.people.filter((person) => lessonOf(person)?.marks[at]).length;
      return make("td", { role: "cell", class: at === firstExtended && "first-extended" }, String(count));
    };
    return make(
      "tr", { role: "row", class: "missed" },
      make("th", { role: "rowheader", scope: "row" }, say("missed-by")),
      ...columns.slice(1).map(() => make("td", { role: "cell" })),
      ...tests.map(counted),
    );
  }

  function row(person, tests, firstExtended) {
    const lesson = lessonOf(person);
    const link = make("a", { href: address({ student: person.key, test: "" }), tabindex: -1 }, named(person.name));
    const line = make("tr", { role: "row" }, make("th", { role: "rowheader", scope: "row" }, link));
    const cell = (shown) => line.append(make("td", { role: "cell" }, shown));
    cell(make("span", { class: `verdict ${look(wordOf(person))}` }, verdict(wordOf(person))));
    for (const part of ["required", "extended", "points"]) cell(lesson ? lesson[part].join("/") : "");
    for (let at = 0; at < tests; at++) {
      const mark = lesson ? lesson.marks[at] : null;
      line.append(markCell(mark, at, at === firstExtended));
    }
    line.person = person;
    return line;
  }

  const stencils = new Map();

  /** Thousands of cells look alike: each is a copy of the first of its kind. */
  function markCell(mark, at, first) {
    const kind = `${state.lang} ${mark} ${first}`;
    if (!stencils.has(kind)) {
      const [label, glyph, colour] =
        mark === null ? [say("not-graded"), "", ""] : [reason(mark), report.glyphs[mark], look(mark)];
      const classes = `mark ${colour} ${first ? "first-extended" : ""}`.trim();
      stencils.set(kind, make("td", { role: "cell", class: classes, "aria-label": label }, glyph));
    }
    const cell = stencils.get(kind).cloneNode(true);
    cell.at = at;
    return cell;
  }

  function fits(person, wanted) {
    if (state.verdict && wordOf(person) !== state.verdict) return false;
    return !wanted || comparable(`${person.name}\n${person.student}`).includes(wanted);
  }

  function comparison() {
    const [key, direction] = state.sort.split(":");
    const at = (report.tests[state.lesson] ?? []).findIndex((test) => test.id === key);
    const rank = (person) => report.reasons.indexOf(lessonOf(person)?.marks[at] ?? "");
    const value = at >= 0 ? rank : (columns.find((column) => column.key === key) ?? columns[0]).value;
    const sign = direction === "down" ? -1 : 1;
    const values = new Map(report.people.map((person) => [person, value(person)]));
    const compare = (a, b) => (typeof a === "string" ? order.compare(a, b) : a - b);
    return (a, b) => sign * compare(values.get(a), values.get(b)) || order.compare(a.name, b.name);
  }

  let shown = [];
  let drawn = "";
  const classAddress = () => address({ student: "", test: "" });

  /** Put the rows that fit into their order, all in one step, and say how many there are. */
  function arrange() {
    const wanted = comparable(state.find.trim());
    shown = report.people.filter((person) => fits(person, wanted)).sort(comparison());
    reorder(place("matrix").tBodies[0], shown.map((person) => rows.get(person)));
    place("count").textContent = shown.length ? say("count", shown.length, report.people.length) : say("nobody");
    const [key, direction] = state.sort.split(":");
    for (const head of place("matrix").tHead.rows[0].cells) {
      if (head.dataset.key === key) head.setAttribute("aria-sort", direction === "down" ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    rove(headings(), headings().find((button) => button.parentElement.dataset.key === key) ?? headings()[0]);
    rove(links(), links()[0]);
    drawn = classAddress();
  }

  /** Take out what does not belong, then move only what is not yet in its place: each move costs a row's drawing. */
  function reorder(body, wanted) {
    const staying = new Set(wanted);
    for (const line of [...body.children]) if (!staying.has(line)) line.remove();
    let next = body.firstElementChild;
    for (const line of wanted) {
      if (line === next) next = next.nextElementSibling;
      else body.insertBefore(line, next);
    }
  }

  function chooseVerdicts() {
    const counts = new Map();
    for (const person of report.people) counts.set(wordOf(person), (counts.get(wordOf(person)) ?? 0) + 1);
    if (!counts.has(state.verdict)) state.verdict = "";
    const words = report.verdictOrder.filter((word) => counts.has(word));
    place("verdict").replaceChildren(
      make("option", { value: "" }, `${say("every-verdict")} (${report.people.length})`),
      ...words.map((word) => make("option", { value: word }, `${verdict(word)} (${counts.get(word)})`)),
    );
    place("verdict").value = state.verdict;
  }

  function chooseLessons() {
    const choice = (number) => {
      const button = make("input", { type: "radio", name: "lesson", value: number });
      button.checked = number === state.lesson;
      return make("label", {}, button, make("span", {}, pick(report.names[number])));
    };
    place("lessons").replaceChildren(make("legend", { class: "unseen" }, say("lessons")), ...report.lessons.map(choice));
  }

  function explainSigns() {
    const entry = (mark) =>
      make("div", {}, make("dt", { class: look(mark) }, report.glyphs[mark]), make("dd", {}, reason(mark)));
    place("legend").replaceChildren(...report.reasons.map(entry));
  }

  function showClass() {
    place("search").value = state.find;
    chooseLessons();
    chooseVerdicts();
    buildMatrix();
    arrange();
    explainSigns();
  }

  // --- Keys: one stop of Tab for all headings, one for all students; arrows move between them ---

  const headings = () => [...place("matrix").tHead.querySelectorAll("button")];
  const links = () => shown.map((person) => rows.get(person).firstChild.firstChild);

  function rove(all, chosen) {
    for (const one of all) one.tabIndex = one === chosen ? 0 : -1;
  }

  function onKey(event) {
    const inHead = event.target.closest("thead button");
    const all = inHead ? headings() : event.target.closest("tbody a") ? links() : [];
    const [back, ahead] = inHead ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
    const at = all.indexOf(event.target);
    const steps = { [back]: at - 1, [ahead]: at + 1, Home: 0, End: all.length - 1, PageUp: at - 15, PageDown: at + 15 };
    if (at < 0 || !(event.key in steps)) return;
    event.preventDefault();
    const next = all[Math.min(Math.max(steps[event.key], 0), all.length - 1)];
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  function onClick(event) {
    const head = event.target.closest("thead th[data-key]");
    const link = event.target.closest("tbody a");
    const cell = event.target.closest("td.mark");
    if (head) {
      const [key, direction] = state.sort.split(":");
      const [first, second] = head.dataset.key === "student" ? ["up", "down"] : ["down", "up"];
      const again = key === head.dataset.key && direction === first;
      change({ sort: `${head.dataset.key}:${again ? second : first}` });
      arrange();
    } else if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault(); // its own address is as old as the row, and knows no later sorting or filter
      location.hash = address({ student: link.closest("tr").person.key, test: "" });
    } else if (cell) {
      const test = report.tests[state.lesson][cell.at];
      location.hash = address({ student: cell.parentElement.person.key, test: test.id });
    }
  }

  function onPoint(event) {
    const cell = event.target.closest("td.mark");
    if (!cell) return;
    const test = report.tests[state.lesson][cell.at];
    const whose = named(cell.parentElement.person.name);
    place("peek").replaceChildren(`${test.id} · ${pick(test.title)} · `, whose, ` · ${cell.getAttribute("aria-label")}`);
  }

  // --- One student ---

  function showOne(person) {
    const open = place("one");
    const title = make("h2", { tabindex: -1 }, person ? named(person.name) : say("unknown-student"));
    open.replaceChildren(title, ways(person));
    if (person) {
      const graded = report.lessons.filter((number) => person.lessons[number]);
      const lessons = graded.map((number) => lessonPart(person, number));
      open.append(about(person), ...lessons, notebooks(person), leftOut(person));
    }
    const asked = state.test && open.querySelector(`[data-test="${CSS.escape(state.test)}"]`);
    if (asked) {
      asked.classList.add("asked");
      if (asked.closest("details")) asked.closest("details").open = true;
      asked.scrollIntoView({ block: "center" });
    } else {
      scrollTo(0, 0);
    }
    title.focus({ preventScroll: Boolean(asked) });
  }

  function ways(person) {
    const at = shown.indexOf(person);
    const way = (other, key) => (other ? make("a", { href: address({ student: other.key, test: "" }) }, say(key)) : "");
    return make(
      "nav", { "aria-label": say("class") },
      make("a", { href: address({ student: "", test: "" }) }, `← ${say("back")}`),
      way(at > 0 && shown[at - 1], "previous"),
      way(at >= 0 && shown[at + 1], "next"),
    );
  }

  function about(person) {
    const feedback = `feedback/${person.key}.md`;
    return facts([
      [say("verdict"), make("span", { class: `verdict ${look(person.verdict)}` }, verdict(person.verdict))],
      [say("points"), person.points.join("/")],
      [say("problem"), text(person.problem)],
      [say("notes"), person.notes.map(text).join(" ")],
      [say("student-id"), person.student && named(person.student)],
      [say("handed-in"), person.handedIn && named(person.handedIn)],
      [say("isolation"), person.isolation],
      [say("seconds"), person.seconds.toFixed(1)],
      [say("content"), person.content && make("code", {}, person.content)],
      [say("feedback"), make("a", { href: `feedback/${encodeURIComponent(person.key)}.md` }, feedback)],
    ]);
  }

  function lessonPart(person, number) {
    const lesson = person.lessons[number];
    const { marks, messages, places } = lesson;
    const ended = (test, at) => ({ ...test, mark: marks[at], message: messages[at], place: places[at] });
    const tests = report.tests[number].map(ended);
    const answer = (yes) => say(yes ? "yes" : "no");
    const counted = ([name, [some, all]]) => `${pick(report.dimensions[name])} ${some}/${all}`;
    return make(
      "section", { class: "lesson" },
      make("h3", {}, pick(report.names[number])),
      facts([
        ["ok", answer(lesson.ok)],
        ["complete", answer(lesson.complete)],
        [say("points"), lesson.points.join("/")],
        [say("rubric"), Object.entries(lesson.rubric).map(counted).join(" · ")],
        [say("seed"), make("code", {}, lesson.seed)],
      ], "inline"),
      ...group("required", tests.filter((test) => test.required), lesson.required),
      ...group("extended", tests.filter((test) => !test.required), lesson.extended),
    );
  }

  function group(key, tests, [some, all]) {
    const missed = tests.filter((test) => test.mark && test.mark !== "not-implemented");
    const unwritten = tests.filter((test) => test.mark === "not-implemented");
    const passed = tests.filter((test) => !test.mark);
    return [
      make("h3", {}, `${say(key)} ${some}/${all}`),
      ...alike(missed).map(([first, ...others]) => missedTest(first, others)),
      folded(say("unwritten", unwritten.length), unwritten),
      folded(say("passed", passed.length), passed),
    ];
  }

  /** Put tests together that ended in the same words: code that does not load is told once, not forty times. */
  function alike(tests) {
    const groups = new Map();
    for (const test of tests) {
      const words = `${test.mark} ${test.message || test.id}`;
      groups.set(words, [...(groups.get(words) ?? []), test]);
    }
    return [...groups.values()];
  }

  function folded(title, tests) {
    if (!tests.length) return "";
    const entry = (test) => make("li", { "data-test": test.id }, `${test.id} ${pick(test.title)}`);
    return make("details", {}, make("summary", {}, title), list(tests.map(entry)));
  }

  function missedTest(test, others) {
    const worth = test.guard ? `0 (−${test.worth})` : `0/${test.worth}`;
    const kinds = [test.core && say("core"), test.guard && say("guard")];
    const aside = [test.rules.join(", "), `${say("points")} ${worth}`, ...kinds].filter(Boolean).join(" · ");
    return make(
      "section", { class: "miss", "data-test": test.id },
      make(
        "h4", {},
        make("span", { class: `verdict ${look(test.mark)}` }, `${report.glyphs[test.mark]} ${reason(test.mark)}`),
        make("span", {}, `${test.id} ${pick(test.title)}`),
        make("span", { class: "quiet" }, aside),
      ),
      facts([
        [say("message"), text(test.message)],
        [say("hint"), test.mark === "fail" && test.hint ? pick(test.hint) : ""],
        [say("place"), test.place && make("code", {}, test.place)],
      ]),
      folded(say("the-same", others.length), others),
    );
  }

  const part = (title, items) => make("section", { class: "lesson" }, make("h3", {}, title), list(items));

  function notebooks(person) {
    if (!person.notebooks.length) return "";
    const cell = ([number, said]) => make("li", {}, `${say("cell", number)}: `, named(said));
    const entry = ({ name, status, errors }) =>
      make("li", {}, named(name), `: ${pick(status)}`, errors.length ? list(errors.map(cell)) : "");
    return part(say("notebooks"), person.notebooks.map(entry));
  }

  function leftOut(person) {
    if (!person.leftOut.length) return "";
    return part(say("left-out"), person.leftOut.map(([name, why]) => make("li", {}, named(name), `: ${pick(why)}`)));
  }

  // --- Where the reader is ---

  let opened = "";

  /** Show what the address asks for. Only what changed is drawn anew. */
  function show() {
    readAddress();
    place(`language-${state.lang}`).checked = true;
    document.documentElement.lang = state.lang === "zh" ? "zh-CN" : "en";
    const person = byKey.get(state.student);
    document.title = person ? `${person.name} · ${say("title")}` : say("title");
    if (drawn !== classAddress()) showClass();
    place("class").hidden = Boolean(state.student);
    place("one").hidden = !state.student;
    if (state.student) showOne(person);
    else if (opened) returnTo(byKey.get(opened));
    opened = state.student;
  }

  /** Put the reader back on the row that was opened. */
  function returnTo(person) {
    const link = person && rows.get(person)?.isConnected ? rows.get(person).firstChild.firstChild : place("search");
    if (link.closest("tbody")) rove(links(), link);
    link.scrollIntoView({ block: "center" });
    link.focus({ preventScroll: true });
  }

  function listen() {
    const table = place("matrix");
    table.addEventListener("click", onClick);
    table.addEventListener("keydown", onKey);
    table.addEventListener("pointerover", onPoint);
    place("search").addEventListener("input", (event) => {
      change({ find: event.target.value });
      arrange();
    });
    place("verdict").addEventListener("change", (event) => {
      change({ verdict: event.target.value });
      arrange();
    });
    place("lessons").addEventListener("change", (event) => {
      change({ lesson: event.target.value });
      show();
      place("lessons").querySelector("input:checked").focus();
    });
    for (const choice of document.querySelectorAll("input[name=language]")) {
      choice.addEventListener("change", () => {
        change({ lang: choice.value });
        show();
        choice.focus();
      });
    }
    addEventListener("hashchange", show);
  }

  place("workbench").hidden = false;
  listen();
  show();
})();
