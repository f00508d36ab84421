import assert from "node:assert/strict";
import test from "node:test";

import { searchByAuthor, searchByTitle } from "../src/search.mjs";

test("a full-width space between two names finds the author", () => {
  assert.deepEqual(searchByAuthor("Randal\u3000Bryant").map((book) => book.title), ["Computer Systems"]);
});

test("tabs and repeated spaces in a title do not matter", () => {
  assert.deepEqual(searchByTitle("Operating \t Systems").map((book) => book.author), ["Remzi Arpaci-Dusseau"]);
});
