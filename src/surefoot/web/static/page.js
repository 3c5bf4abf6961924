"use strict";
// The little that htmx does not do: one-time links, what was typed, the connection, printing.
(function () {
  const $ = (what, from) => Array.from((from || document).querySelectorAll(what));

  // The secret of a one-time link stands behind the # and is never sent as a part of an address.
  const first = document.querySelector("form[data-link]");
  if (first) {
    const link = location.hash.slice(1) || sessionStorage.getItem("link") || "";
    if (location.hash) {
      sessionStorage.setItem("link", link);
      history.replaceState(null, "", location.pathname);
    }
    first.elements.link.value = link;
    first.addEventListener("submit", () => sessionStorage.removeItem("link"));
    if (link && first.dataset.demo !== undefined) first.requestSubmit();
  }

  // What was typed into the lab before these scripts were here is heard now.
  document.addEventListener("DOMContentLoaded", () => {
    const early = $("#lab-text").filter((field) => field.value !== field.defaultValue);
    early.forEach((field) => field.dispatchEvent(new Event("input", { bubbles: true })));
  });

  // What was typed is kept until it was told, whatever happens to the page or the connection.
  const slot = (form) => "typed " + location.pathname + " " + form.dataset.keep;
  function keep(form) {
    const typed = {};
    for (const field of form.elements)
      if (field.name && field.type !== "hidden" && field.type !== "submit") typed[field.name] = field.value;
    sessionStorage.setItem(slot(form), JSON.stringify(typed));
  }
  function restore(form) {
    const typed = JSON.parse(sessionStorage.getItem(slot(form)) || "{}");
    for (const name of Object.keys(typed)) {
      const field = form.elements[name];
      if (field && !field.value && field.type !== "checkbox") field.value = typed[name];
    }
  }
  $("form[data-keep]").forEach(restore);
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-keep]");
    if (form) keep(form);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.keep && !form.hasAttribute("hx-post")) sessionStorage.removeItem(slot(form));
    // a double click sends once; the form's key sees to the rest
    if (!form.hasAttribute("hx-post") && form.method === "post")
      setTimeout(() => $("button", form).forEach((b) => (b.disabled = true)), 0);
  });
  window.addEventListener("pageshow", () => $("form button").forEach((b) => (b.disabled = false)));

  document.addEventListener("htmx:afterSwap", (event) => {
    $("form[data-keep]", event.target.parentElement || document).forEach(restore);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target.closest ? event.target.closest("form[data-keep]") : null;
    if (!form || !event.detail.successful) return;
    sessionStorage.removeItem(slot(form));
    const id = form.elements.id ? form.elements.id.value : "";
    setTimeout(() => {
      const row = document.getElementById("row-" + id);
      const next = row && row.nextElementSibling && row.nextElementSibling.querySelector("input:not([type=hidden])");
      if (next && document.activeElement === document.body) next.focus();
    }, 30);
  });

  // What somebody opened on the board stays open when it is drawn anew
  let shown = false;
  document.addEventListener("htmx:beforeSwap", () => {
    const rates = document.getElementById("rates");
    shown = rates ? rates.open : shown;
  });
  document.addEventListener("htmx:afterSwap", () => {
    const rates = document.getElementById("rates");
    if (rates) rates.open = shown;
  });

  // The connection
  const offline = document.getElementById("offline");
  const live = document.getElementById("live");
  function lost(yes) {
    if (offline) offline.hidden = !yes;
    if (live) live.textContent = yes ? "The connection is lost; trying again." : "This page follows the study by itself.";
  }
  document.addEventListener("htmx:sseError", () => lost(true));
  document.addEventListener("htmx:sseOpen", () => lost(false));
  document.addEventListener("htmx:sendError", () => lost(true));
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.xhr && event.detail.xhr.status) lost(false);
  });
  window.addEventListener("offline", () => lost(true));
  window.addEventListener("online", () => lost(false));

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-print]")) window.print();
  });
})();
