"use strict";
// The list of conversations: ticks that survive updates, an order that does not change by
// itself, renaming, and what is done to several at once.
(() => {
  const { one, all, on, hooks, keys, acts, say, post, settle } = window.studio;
  const ticked = new Set();
  const boxes = () => all("#rows input[name=thread]");

  const count = () => {
    const words = one("#ticked"), whole = one("#all"), rows = boxes();
    if (!words) return;
    words.textContent = ticked.size ? `${ticked.size} ticked` : "Tick conversations to work on several";
    whole.hidden = !rows.length;
    whole.checked = rows.length > 0 && rows.every((box) => box.checked);
    whole.indeterminate = !whole.checked && ticked.size > 0;
    whole.setAttribute("aria-label", "Tick all on this page");
  };
  const tick = (box) => { if (box.checked) ticked.add(box.value); else ticked.delete(box.value); };

  // ---- the order stays until somebody asks for it, so that no row moves under the pointer
  const shown = () => all("#rows [data-row]").map((row) => row.dataset.row);
  let order = shown();
  const hold = () => {
    const now = shown(), known = order.filter((id) => now.includes(id)), fresh = now.filter((id) => !order.includes(id));
    const wanted = [...fresh, ...known], body = one("#rows tbody");
    // On a board a card's place says what its conversation is at: there it does move.
    const moved = body && wanted.some((id, at) => id !== now[at]);
    if (moved) wanted.forEach((id, at) => { const row = one(`#row-${CSS.escape(id)}`); if (body.children[at] !== row) body.insertBefore(row, body.children[at] || null); });
    order = wanted;
    one("#resort").hidden = !moved;
    for (const box of boxes()) box.checked = ticked.has(box.value);
    for (const id of [...ticked]) if (!now.includes(id)) ticked.delete(id);
    count();
  };

  // ---- renaming
  const rename = (button) => {
    const dialog = one("#rename");
    if (!button || !dialog) return;
    const form = one("form", dialog);
    form.action = button.dataset.rename;
    form.elements.title.value = button.dataset.title;
    one("#rename-errors").replaceChildren();
    dialog.showModal();
    form.elements.title.select();
    dialog.addEventListener("close", () => (button.isConnected ? button : one("#q")).focus(), { once: true });
  };

  // ---- several at once
  const work = async (form, button) => {
    const fields = new FormData(form, button), asking = one("#asking");
    if (button?.value !== "delete" || !one("[name=typed]", asking)) fields.delete("typed");
    try {
      const fine = await settle(await post(form.getAttribute("action"), fields), asking);
      if (fine) { ticked.clear(); hold(); }
    } catch { window.studio.toast("The server cannot be reached. Nothing was changed."); }
  };

  const move = (by) => {
    const links = all("#rows [data-open-row]"), at = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
    links.at(at < 0 ? (by > 0 ? 0 : -1) : Math.min(Math.max(at + by, 0), links.length - 1))?.focus();
  };
  const row = () => document.activeElement?.closest("[data-row]");

  hooks.swap.push(hold);
  acts.resort = () => location.reload();
  Object.assign(keys, {
    "/": () => one("#q")?.focus(),
    n: () => one("#new-thread")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    x: () => row() && one("input[name=thread]", row()).click(),
    Delete: () => { const box = row() && one("input[name=thread]", row()); if (box && !box.checked) box.click(); one("#bulk [value=delete]")?.focus(); },
  });
  on("change", (e) => {
    if (e.target.id === "all") for (const box of boxes()) { box.checked = e.target.checked; tick(box); }
    else if (e.target.matches("#rows input[name=thread]")) tick(e.target);
    else return;
    count();
    say(`${ticked.size} ticked`);
  });
  on("click", (e) => { const button = e.target.closest?.("[data-rename]"); if (button) rename(button); });
  on("keydown", (e) => { if (e.key === "F2" && row()) { e.preventDefault(); rename(one("[data-rename]", row())); } });
  on("submit", (e) => {
    if (e.target.id !== "bulk" || ["md", "jsonl"].includes(e.submitter?.value)) return;
    e.preventDefault();
    work(e.target, e.submitter);
  });
  for (const box of boxes()) tick(box);
  count();
})();
