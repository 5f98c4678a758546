// Keeps the page fresh: asks for its content once a second and changes only what differs, so that
// focus, selection, scrolling and open details survive. Without it every page still works.
"use strict";

const EVERY_MS = 1000;
const MISSES = 2; // unanswered questions in a row before the viewer is told
const main = document.getElementById("content");
const lost = document.getElementById("lost");
let tag = "";
let missed = 0;

function same(before, after) {
  return before.nodeType === after.nodeType && before.nodeName === after.nodeName;
}

function attributes(before, after) {
  for (const { name } of [...before.attributes]) {
    if (!after.hasAttribute(name) && !(before.nodeName === "DETAILS" && name === "open")) before.removeAttribute(name);
  }
  for (const { name, value } of after.attributes) {
    if (before.getAttribute(name) !== value) before.setAttribute(name, value);
  }
}

function morph(before, after) {
  if (before.nodeType === Node.TEXT_NODE) {
    if (before.data !== after.data) before.data = after.data;
    return;
  }
  if (before.nodeName === "FORM" && before.contains(document.activeElement)) return; // being filled in
  if (before.nodeName !== "SELECT" && before.nodeName !== "INPUT") attributes(before, after);
  if (before.nodeName !== "SELECT") children(before, after);
}

function children(before, after) {
  const old = [...before.childNodes];
  const fresh = [...after.childNodes];
  fresh.forEach((node, index) => {
    const there = old[index];
    if (there === undefined) before.append(node);
    else if (same(there, node)) morph(there, node);
    else there.replaceWith(node);
  });
  old.slice(fresh.length).forEach((node) => node.remove());
}

function selecting() {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && main.contains(selection.anchorNode);
}

async function refresh() {
  if (document.hidden || selecting()) return;
  const address = new URL(location.href);
  address.searchParams.set("part", "content");
  const answer = await fetch(address, {
    headers: tag ? { "If-None-Match": tag } : {},
    credentials: "same-origin",
    signal: AbortSignal.timeout(8000),
  });
  if (answer.status === 401) location.assign("/sign-in");
  if (answer.status !== 200 && answer.status !== 304) throw new Error(String(answer.status));
  if (answer.status === 200) {
    tag = answer.headers.get("etag") || "";
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    children(main, parsed.body);
  }
}

async function forever() {
  for (;;) {
    await new Promise((done) => setTimeout(done, EVERY_MS));
    try {
      await refresh();
      missed = 0;
    } catch {
      missed += 1;
    }
    lost.hidden = missed < MISSES;
    main.toggleAttribute("data-stale", missed >= MISSES);
  }
}

function preferences(form) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  form.querySelector("input[name=zone]").value = zone;
  form.querySelector("button").hidden = true; // a choice is enough
  form.addEventListener("change", () => form.requestSubmit());
}

function choices(event) {
  const filters = event.target.closest(".filters");
  if (filters && event.target.nodeName === "SELECT") filters.requestSubmit();
}

document.addEventListener("change", choices);
const settings = document.querySelector("details.settings");
if (settings && matchMedia("(max-width: 640px)").matches) settings.removeAttribute("open");
const form = document.getElementById("preferences");
if (form) preferences(form);
if (main && lost && main.dataset.view && !main.querySelector("form.confirm")) forever();
document.addEventListener("submit", () => main && main.setAttribute("aria-busy", "true"));
