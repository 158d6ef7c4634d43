"use strict";
// Redraw the preview as one types.
(() => {
  const { one, all, on, post, swap, say } = window.studio;
  let waiting = 0, asked = 0;

  const mark = () => {
    for (const said of all(".said-of")) {
      const field = one(`#field-${said.id.slice(5)}`), wrong = said.querySelector(".fault");
      if (!field) continue;
      if (wrong) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
    }
  };
  const preview = async (form) => {
    const mine = ++asked;
    const fields = new FormData(form);
    fields.delete("seen");
    try {
      const answer = await post(form.dataset.preview, fields);
      if (mine !== asked || !answer.ok || answer.redirected) return;
      await swap(await answer.text());
      mark();
      const wrong = all("#preview .wrong li").length;
      if (wrong) say(`${wrong} ${wrong === 1 ? "option" : "options"} cannot be like this`);
    } catch { /* The next keystroke asks again; saving says what is wrong. */ }
  };
  const soon = (e) => {
    const form = e.target.closest?.("form[data-preview]");
    if (!form || e.target.name === "reason") return;
    clearTimeout(waiting);
    waiting = setTimeout(preview, 300, form);
  };
  on("input", soon);
  on("change", soon);

  on("submit", (e) => {
    if (e.submitter?.id === "preview-button") { e.preventDefault(); preview(e.submitter.form); }
  });
  one("#refusal")?.focus();
})();
