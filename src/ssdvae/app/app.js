// The views work without this: it answers while one types, and takes events that are pasted apart.
"use strict";
document.documentElement.classList.add("scripted");

// Work that takes longer than a moment is told, here or on the way to another page.
let slow;
const work = () => { slow ??= setTimeout(() => { document.getElementById("working").hidden = false; }, 300); };
const rest = () => { clearTimeout(slow); slow = undefined; document.getElementById("working").hidden = true; };
addEventListener("pagehide", rest);
addEventListener("pageshow", rest);
document.addEventListener("submit", (event) => { if (!event.target.matches("[data-live]")) work(); });
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']");
  if (link && !link.hasAttribute("download") && !event.ctrlKey && !event.metaKey && !event.shiftKey) work();
});
// The address says all that a page shows, so going back is reading it again.
// A link to a place on this page (the skip link) is no step back.
const shown = () => location.pathname + location.search;
let address_shown = shown();
addEventListener("popstate", () => { if (shown() !== address_shown) location.reload(); });

// What is typed is asked at once: the same page is fetched, and its parts take the place of those that are here.
all("form[data-live]").forEach((form) => {
  let waiting, asking, typing;
  const update = async (action) => {
    asking?.abort();
    asking = new AbortController();
    const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    // One entry for each action: what is typed into one box is one.
    const again = address === shown();
    if (!again) history[action ? "pushState" : "replaceState"](null, "", address);
    address_shown = shown();
    const main = document.getElementById("main");
    main.classList.add("busy");
    work();
    try {
      const answer = await fetch(address, { signal: asking.signal });
      const text = await answer.text();
      if (!answer.ok) throw new Error(JSON.parse(text).detail);
      const there = new DOMParser().parseFromString(text, "text/html");
      all("[data-part]").forEach((part) => {
        const fresh = there.getElementById(part.id);
        part.replaceChildren(...(fresh ? fresh.childNodes : []));
      });
      all("nav a").forEach((link, place) => { link.href = all("nav a", there)[place].getAttribute("href"); });
      enhance(main);
    } catch (error) {
      if (error.name === "AbortError") return;
      const sentence = Object.assign(document.createElement("p"), { className: "problem", textContent: error.message });
      sentence.setAttribute("role", "alert");
      document.getElementById("problem")?.replaceChildren(sentence);
    }
    main.classList.remove("busy");
    rest();
  };
  let action = false;
  const soon = (begins) => {
    action ||= begins;
    clearTimeout(waiting);
    waiting = setTimeout(() => { update(action); action = false; }, 200);
  };
  // The fields of an event are one box.
  const unit = ({ target }) => (target.matches(".slot input") ? target.closest("li") : target);
  form.addEventListener("input", (event) => { soon(unit(event) !== typing); typing = unit(event); });
  form.addEventListener("change", (event) => { soon(unit(event) !== typing); typing = event.target.matches(".slot input") ? typing : undefined; });
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); update(true); });

  const list = form.querySelector(".editor");
  if (!list) return;
  const boxes = (row) => all("[name^=e]", row);
  const box = (row) => boxes(row)[0];
  const put = (row, text) => boxes(row).forEach((input, place, some) => {
    const word = some.length > 1 ? text.split(/\s+/)[place] ?? "" : text;
    input.value = word === "-" ? "" : word;
  });
  const number = () => all("li", list).forEach((row, place) => {
    row.querySelector("[data-part]").id = `answer-${place}`;
    all("[aria-label]", row.querySelector(".boxes")).forEach((part) => {
      part.setAttribute("aria-label", part.getAttribute("aria-label").replace(/\d+/, place + 1));
    });
  });
  const insert = (after, text = "") => {
    const row = after.cloneNode(true);
    all("input", row).forEach((input) => { input.value = ""; });
    row.querySelector("[data-part]").replaceChildren();
    put(row, text);
    after.after(row);
    number();
    return row;
  };
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("[name^=e]")) return;
    event.preventDefault();
    const row = event.target.closest("li");
    box(row.nextElementSibling && !box(row.nextElementSibling).value ? row.nextElementSibling : insert(row)).focus();
    soon(true);
  });
  list.addEventListener("input", (event) => {
    const row = event.target.closest("li");
    if (event.target.matches("[name^=e]") && event.target.value && !row.nextElementSibling) insert(row);
  });
  list.addEventListener("paste", (event) => {
    const lines = event.clipboardData.getData("text").split(/\r?\n/).filter((line) => line.trim());
    if (!event.target.matches("[name^=e]") || lines.length < 2) return;
    event.preventDefault();
    let row = event.target.closest("li");
    put(row, lines[0]);
    lines.slice(1).forEach((line) => { row = insert(row, line); });
    if (!row.nextElementSibling) insert(row);
    box(row).focus();
    soon(true);
  });
  list.addEventListener("click", (event) => {
    if (!event.target.matches("[data-remove]")) return;
    const row = event.target.closest("li");
    const next = row.nextElementSibling || row.previousElementSibling;
    row.remove();
    number();
    box(next)?.focus();
    soon(true);
  });
});

// Copy what a box has, or the address.
document.addEventListener("click", async (event) => {
  if (!event.target.matches("[data-copy], [data-link]")) return;
  const box = document.getElementById(event.target.dataset.copy ?? "");
  let done = true;
  try { await navigator.clipboard.writeText(box ? box.value : location.href); } catch { box?.select(); done = document.execCommand("copy"); }
  event.target.nextElementSibling.textContent = done ? " copied" : " select it, and copy it";
});
