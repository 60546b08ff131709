// The page can be read without this: it only answers when something is pointed at, focused or pressed.
"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Words about the thing that is pointed at or focused.
const tip = document.getElementById("tip");
const say = (target) => {
  tip.textContent = target.dataset.tip;
  tip.hidden = false;
  const box = target.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = Math.min(box.left + box.width / 2 - own.width / 2, document.documentElement.clientWidth - own.width - 8);
  const above = box.top - own.height - 8;
  tip.style.left = `${Math.max(8, left) + scrollX}px`;
  tip.style.top = `${(above > 8 ? above : box.bottom + 8) + scrollY}px`;
};
const both = (target, begin, end) => {
  target.addEventListener("pointerenter", begin);
  target.addEventListener("focus", begin);
  target.addEventListener("pointerleave", end);
  target.addEventListener("blur", end);
};
addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

// What answers in a part of the page, which may have come later.
const enhance = (root) => {
  all("[data-tip]", root).forEach((target) => both(target, () => say(target), () => { tip.hidden = true; }));

  // A curve is one stop of the tab key; the arrow keys go along it.
  all("[data-roving]", root).forEach((curve) => {
    const marks = all("[tabindex]", curve);
    curve.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const here = marks.indexOf(document.activeElement);
      const next = marks[Math.min(marks.length - 1, Math.max(0, here + step))];
      marks[here].tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  });

  // The legend shows and hides curves.
  all("[data-toggle]", root).forEach((button) => button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    const curve = button.closest("figure").querySelector(`[data-series="${button.dataset.toggle}"]`);
    curve.toggleAttribute("hidden", !shown);
  }));

  // The links of one frame, or one link.
  all("svg.links", root).forEach((graph) => {
    const paths = all("path", graph);
    const light = (wanted) => {
      paths.forEach((path) => path.classList.toggle("on", wanted(path.dataset)));
      graph.classList.add("lit");
    };
    const dark = () => graph.classList.remove("lit");
    paths.forEach((path) => both(path, () => light((d) => d === path.dataset), dark));
    all(".node", graph).forEach((node) => {
      const { nodeFrom, nodeTo } = node.dataset;
      both(node, () => light((d) => d.from === nodeFrom || d.to === nodeTo), dark);
    });
  });

  // A process: the paths of one activity, and filters of what is rare.
  all("svg.process", root).forEach((graph) => {
    const paths = all(".path", graph), nodes = all(".node", graph);
    let gone = new Set();
    const light = (wanted) => {
      paths.forEach((path) => {
        const { from, to } = path.dataset, on = wanted(path.dataset);
        path.classList.toggle("on", on);
        if (on && !gone.has(from) && !gone.has(to)) path.removeAttribute("hidden");
      });
      graph.classList.add("lit");
    };
    const dark = () => { graph.classList.remove("lit"); sift(); };
    paths.forEach((path) => both(path, () => light((d) => d.from === path.dataset.from && d.to === path.dataset.to), dark));
    nodes.forEach((node) => {
      const id = node.dataset.node;
      both(node, () => light((d) => d.from === id || d.to === id), dark);
    });
    const filters = all("input[data-least]", graph.closest("figure"));
    const sift = () => {
      const least = { activities: 0, paths: 0 };
      filters.forEach((input) => {
        const count = least[input.dataset.least] = Number(input.dataset.counts.split(" ")[input.value]);
        input.nextElementSibling.textContent = `at least ${count.toLocaleString("en")} times`;
      });
      gone = new Set(nodes.filter((n) => n.matches(".activity") && n.dataset.count < least.activities).map((n) => n.dataset.node));
      nodes.forEach((node) => node.toggleAttribute("hidden", gone.has(node.dataset.node)));
      paths.forEach((path) => {
        const { from, to, count } = path.dataset;
        path.toggleAttribute("hidden", gone.has(from) || gone.has(to) || (!path.matches(".main") && count < least.paths));
      });
    };
    filters.forEach((input) => input.addEventListener("input", sift));
    if (filters.length) sift();
    // On a narrow screen, begin where cases begin.
    const box = graph.parentElement, start = graph.querySelector(".start").getBoundingClientRect();
    box.scrollLeft += start.left + start.width / 2 - box.getBoundingClientRect().left - box.clientWidth / 2;
  });

  // Where the model looked when it inferred a frame.
  all(".document", root).forEach((text) => {
    const words = all(".words span", text), frames = all("[data-attention]", text);
    const rest = words.map((word) => word.style.getPropertyValue("--share"));
    const paint = (shares) => words.forEach((word, place) => word.style.setProperty("--share", shares[place]));
    const show = (frame) => {
      frames.forEach((other) => other.classList.toggle("on", other === frame));
      paint(frame ? frame.dataset.attention.split(" ") : rest);
    };
    const focused = () => frames.find((frame) => frame === document.activeElement);
    frames.forEach((frame) => both(frame, () => show(frame), () => show(focused())));
  });

  // Rows that hold what is typed; where there are none, a sentence says so.
  all("input[data-filter]", root).forEach((input) => input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase(), table = document.getElementById(input.dataset.filter);
    const rows = all("tbody tr", table);
    rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
    const none = rows.every((row) => row.hidden);
    const nothing = document.querySelector(`[data-nothing="${input.dataset.filter}"]`);
    nothing.textContent = none ? `Nothing here has “${input.value.trim()}”.` : "";
    nothing.hidden = !none;
    table.hidden = none;
  }));
};
enhance(document);
