import assert from "node:assert/strict";
import test from "node:test";

import { normalizeText, searchByAuthor, searchByTitle } from "../src/search.mjs";

test("letter case does not matter", () => {
  assert.equal(searchByTitle("COMPUTER systems")[0].author, "Randal Bryant");
});

test("part of an author's name is enough", () => {
  assert.deepEqual(searchByAuthor("ramalho").map((book) => book.title), ["流畅的 Python"]);
});

test("a blank query finds nothing", () => {
  assert.deepEqual(searchByTitle("   "), []);
});

test("an unknown author finds nothing", () => {
  assert.deepEqual(searchByAuthor("nobody in particular"), []);
});

test("normalizing twice changes nothing more", () => {
  const once = normalizeText("Randal Bryant");
  assert.equal(normalizeText(once), once);
});
