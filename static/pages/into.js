"use strict";
// Put what a button with data-into is answered in the place it names.
(() => {
  const { one, on, post } = window.studio;

  const into = async (button) => {
    const place = one(button.dataset.into), form = button.form;
    place.textContent = button.dataset.busy || "Asking the model…";
    button.setAttribute("aria-disabled", "true");
    try {
      const answer = await post(button.formAction, new FormData(form, button));
      const text = await answer.text();
      if (answer.headers.get("Content-Type")?.startsWith("text/html") && answer.status !== 403) place.innerHTML = text;
      else place.textContent = `This did not work (${answer.status}).`;
    } catch { place.textContent = "The server cannot be reached."; } finally { button.removeAttribute("aria-disabled"); }
  };
  on("submit", (e) => {
    const button = e.submitter;
    if (!button?.dataset.into) return;
    e.preventDefault();
    if (button.getAttribute("aria-disabled") !== "true") into(button);
  });
})();
