"use strict";
// Live figures: one stream of events fills the elements with data-live. Without it the page is
// complete too. The stream is closed while nobody sees the page.
(() => {
  const places = new Map();
  for (const each of document.querySelectorAll("[data-live]")) {
    const name = each.dataset.live;
    places.set(name, [...(places.get(name) || []), each]);
  }
  if (!places.size) return;
  const state = document.getElementById("live");
  const budget = document.getElementById("budget");
  const list = document.getElementById("concerns");
  let source = null;
  let again = 0;
  let shownConcerns = null;
  const news = document.getElementById("changes");
  let shownChanges = null;

  const say = (text) => {
    if (state.textContent !== text) state.textContent = text;
  };

  const element = (name, text, parent) => {
    const made = document.createElement(name);
    made.textContent = text;
    parent.append(made);
    return made;
  };

  const showConcerns = (concerns) => {
    const key = JSON.stringify(concerns);
    if (!list || key === shownConcerns) return;
    const first = shownConcerns === null;
    shownConcerns = key;
    if (first || list.contains(document.activeElement)) return;
    list.replaceChildren();
    for (const each of concerns) {
      const item = element("li", "", list);
      item.className = each.severity;
      const words = element("span", "", item);
      if (each.target.startsWith("/-/dashboard")) element("a", each.text, words).href = each.target;
      else words.textContent = each.text;
      if (each.remedy) {
        item.append(" ");
        element("code", each.remedy, item);
      }
    }
    if (!concerns.length) element("li", "Nothing: everything works.", list).className = "good";
  };

  // Rows are changed in place: who reads or follows one keeps it.
  const showChanges = (changes) => {
    if (!news || !changes.length || news.contains(document.activeElement)) return;
    const key = JSON.stringify(changes.map((each) => [each.kind, each.target]));
    if (key !== shownChanges) {
      shownChanges = key;
      news.replaceChildren();
      for (const each of changes) {
        const item = element("li", "", news);
        element("span", each.kind, item).className = `word ${each.kind}`;
        item.append(" ");
        const target = element("a", each.title, item);
        if (each.target.startsWith("/") && !each.target.startsWith("//")) target.href = each.target;
        item.append(" ");
        const details = element("small", `${each.details} · `, item);
        element("span", each.ago, details);
      }
    }
    news.querySelectorAll("small span").forEach((each, place) => {
      if (changes[place]) each.textContent = changes[place].ago;
    });
  };

  const show = (event) => {
    const { values, concerns, changes } = JSON.parse(event.data);
    for (const [name, found] of places) {
      for (const each of found) {
        if (name in values && each.textContent !== values[name]) each.textContent = values[name];
      }
    }
    if (budget) budget.value = Number.parseFloat(values.budget.replace("> ", "")) / 100 || 0;
    showConcerns(concerns);
    showChanges(changes);
    say("live");
  };

  const open = () => {
    clearTimeout(again);
    if (source || document.hidden) return;
    source = new EventSource("/-/dashboard/live");
    source.onmessage = show;
    source.onerror = () => {
      say("reconnecting …");
      // A browser connects again by itself, except after a refusal.
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        again = setTimeout(open, 10_000);
      }
    };
  };

  const close = () => {
    if (source) source.close();
    source = null;
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
})();
