"use strict";
(() => {
  const main = document.querySelector("main");
  const tree = document.getElementById("tree");
  const make = (name, words) => {
    const made = document.createElement(name);
    made.textContent = words;
    return made;
  };

  /* A part may stand in several folds: open them all, then go there. */
  const reveal = (target) => {
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
    target.scrollIntoView({ block: "start" });
  };
  const here = () => {
    const target = document.getElementById(location.hash.slice(1));
    for (const link of tree.querySelectorAll("a.here")) link.classList.remove("here");
    if (!target) return;
    reveal(target);
    const link = tree.querySelector(`a[href="#${CSS.escape(target.id)}"]`);
    if (link) link.classList.add("here");
  };
  addEventListener("hashchange", here);

  for (const time of document.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    time.title = time.textContent;
    time.textContent = moment.toLocaleString();
  }

  /* Search: every block that has the words; Enter and Shift+Enter go through them. */
  const input = make("input", "");
  input.type = "search";
  input.placeholder = "Search the session (/)";
  input.setAttribute("aria-label", "Search the session");
  const count = make("output", "");
  let found = [];
  let at = -1;
  const search = () => {
    for (const block of found) block.classList.remove("found");
    const words = input.value.trim().toLowerCase();
    const blocks = words ? [...main.querySelectorAll(".block")] : [];
    found = blocks.filter((block) => block.textContent.toLowerCase().includes(words));
    at = -1;
    count.textContent = words ? (found.length ? `${found.length} found` : "nothing found") : "";
  };
  const openFolds = (block, words) => {
    for (const fold of block.querySelectorAll("details")) {
      if (fold.textContent.toLowerCase().includes(words)) fold.open = true;
    }
  };
  const go = (step) => {
    if (!found.length) return;
    if (at >= 0) found[at].classList.remove("found");
    at = (at + step + found.length) % found.length;
    found[at].classList.add("found");
    openFolds(found[at], input.value.trim().toLowerCase());
    reveal(found[at]);
    count.textContent = `${at + 1} of ${found.length}`;
  };
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 200);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    clearTimeout(waiting);
    if (at < 0) search();
    go(event.shiftKey ? (at < 0 ? 0 : -1) : 1);
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target === input) return;
    event.preventDefault();
    input.focus();
  });

  const button = (words, act) => {
    const made = make("button", words);
    made.type = "button";
    made.addEventListener("click", () => act(made));
    return made;
  };
  let unfolded = false;
  const foldAll = (made) => {
    unfolded = !unfolded;
    for (const fold of main.querySelectorAll("details")) fold.open = unfolded;
    made.textContent = unfolded ? "Collapse all" : "Expand all";
  };
  const turnTheme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };
  const bar = make("div", "");
  bar.className = "bar";
  bar.append(input, count, button("Expand all", foldAll), button("Light / dark", turnTheme));
  main.prepend(bar);
  here();
})();
