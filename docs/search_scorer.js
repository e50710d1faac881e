// Scores of Sphinx's search. Where words match equally well: titles with all words, then guides, and examples last.
"use strict";

const FOLDERS = { howto: 8, help: 6, learn: 5, quickstart: 5, gallery: -8, "reference/benchmarks": -4, "reference/architecture": -3 };

var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    const words = (new URLSearchParams(window.location.search).get("q") ?? "").toLowerCase().split(/\s+/);
    const own = (title ?? "").toLowerCase().split(/[^\w.]+/);
    const folder = Object.keys(FOLDERS).find((name) => docname === name || docname.startsWith(`${name}/`));
    return score + (folder ? FOLDERS[folder] : 0) + (words.every((word) => own.includes(word)) ? 10 : 0);
  },
  // Sphinx's own
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
