"use strict";
// The files of a message that is being written: chosen, dropped or pasted, uploaded at once, and
// kept by their tokens until the message is sent. Without a script the form carries them itself.
(() => {
  const one = (selector) => document.querySelector(selector);
  const form = one("#composer"), list = one("#files"), picker = one("#picker"), button = one("#attach");
  if (!form || !picker) return;
  const { upload, most, bytes, size: limit } = form.dataset;
  const place = `om-files-${document.body.dataset.own}`;
  let files = [], waiting = null;

  const recall = () => { try { return JSON.parse(localStorage.getItem(place)) || []; } catch { return []; } };
  const keep = () => {
    const kept = files.filter((file) => file.token).map(({ token, name, words }) => ({ token, name, words }));
    try { localStorage.setItem(place, JSON.stringify(kept)); } catch { /* full or forbidden */ }
  };
  const say = (text) => { const status = one("#status"); if (status) status.textContent = text; };
  const refuse = (text) => { const alert = one("#refusal"); alert.textContent = text; alert.hidden = !text; };
  const element = (name, className, text = "") => Object.assign(document.createElement(name), { className, textContent: text });

  const thumbnail = async (file, spot) => {
    try {
      const picture = await createImageBitmap(file.blob), side = 96;
      const scale = Math.min(1, side / Math.max(picture.width, picture.height)), canvas = document.createElement("canvas");
      canvas.width = Math.max(1, picture.width * scale);
      canvas.height = Math.max(1, picture.height * scale);
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      picture.close();
      canvas.setAttribute("aria-hidden", "true");
      spot.replaceChildren(canvas);
    } catch { /* the server says what is wrong with it */ }
  };
  const action = (text, label, act) => {
    const made = element("button", "button quiet small", text);
    made.type = "button";
    made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  };
  const draw = (file) => {
    const row = (file.row ||= element("li", "")), body = element("span", "file"), state = element("small", "num", file.words);
    if (file.error) { state.className = "bad"; state.textContent = file.error; }
    else if (!file.token) state.textContent = `${file.words} · uploading…`;
    if (!file.spot) {
      file.spot = element("span", "spot", "≡");
      file.spot.setAttribute("aria-hidden", "true");
      if (file.blob?.type.startsWith("image/")) thumbnail(file, file.spot);
    }
    body.append(file.spot, element("b", "", file.name), state);
    if (file.error && file.blob) body.append(action("Try again", `Try to attach ${file.name} again`, () => send(file)));
    body.append(action("✕", `Remove ${file.name}`, () => remove(file)));
    row.toggleAttribute("aria-busy", !file.token && !file.error);
    row.replaceChildren(body);
    if (!row.isConnected) list.append(row);
  };
  const remove = (file) => {
    const at = files.indexOf(file), focused = file.row.contains(document.activeElement);
    file.aborted?.abort();
    files = files.filter((other) => other !== file);
    file.row.remove();
    keep();
    refuse("");
    say(`${file.name} removed`);
    if (focused) (files[Math.min(at, files.length - 1)]?.row.querySelector("button:last-child") || button).focus();
    settle();
  };

  const words = (n) => (n < 1000 ? `${n} B` : n < 999500 ? `${+(n / 1000).toFixed(1)} kB` : `${+(n / 1e6).toFixed(1)} MB`);
  const send = async (file) => {
    const body = new FormData();
    body.append("file", file.blob, file.name);
    [file.error, file.aborted] = ["", new AbortController()];
    draw(file);
    try {
      const answer = await window.studio.post(upload, body, { signal: file.aborted.signal });
      if (answer.ok) {
        const { token, name, size } = await answer.json();
        Object.assign(file, { token, name, words: size });
      } else file.error = [401, 413, 422].includes(answer.status) ? await answer.text() : "This could not be attached. Try again.";
    } catch { file.error = "The connection was lost. Try again."; }
    if (!files.includes(file)) return;
    say(file.error || `${file.name} attached`);
    draw(file);
    keep();
    settle();
  };
  const settle = () => {
    if (!waiting || files.some((file) => !file.token && !file.error)) return;
    const act = waiting;
    waiting = null;
    act();
  };
  const add = (blobs) => {
    refuse("");
    for (const blob of blobs) {
      const name = blob.name || "pasted.png";
      if (files.length >= most) { refuse(`A message takes at most ${most} files. Remove one, or send the others after it.`); break; }
      const file = { blob, name, words: words(blob.size), token: "", error: "" };
      files.push(file);
      if (blob.size > bytes) { file.error = `This is larger than ${limit}. Attach a smaller file.`; file.blob = null; draw(file); say(`${name}: ${file.error}`); }
      else send(file);
    }
    one("#message").focus();
  };
  const restore = (kept) => {
    for (const each of kept) {
      if (files.length >= most || files.some((file) => file.token === each.token)) continue;
      const file = { ...each, error: "" };
      files.push(file);
      draw(file);
    }
    keep();
  };

  window.attached = {
    // Tells whether sending has to wait; once uploads have ended, the act is tried again.
    holds(act) {
      const wrong = files.find((file) => file.error);
      if (wrong) { refuse(`${wrong.name} was not attached. Remove it or try again, then send.`); return true; }
      if (!files.some((file) => !file.token)) return false;
      waiting = act;
      say("The message is sent once its files are uploaded");
      return true;
    },
    take() {
      const taken = files.map(({ token, name, words }) => ({ token, name, words }));
      files = [];
      list.replaceChildren();
      keep();
      return taken;
    },
    restore,
  };

  const carries = (e) => [...(e.dataTransfer?.types || [])].includes("Files");
  const chat = one(".chat");
  let inside = 0;
  const mark = () => form.classList.toggle("dropping", inside > 0);
  button.addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => { add([...picker.files]); picker.value = ""; });
  chat.addEventListener("dragenter", (e) => { if (carries(e)) { e.preventDefault(); inside += 1; mark(); } });
  chat.addEventListener("dragover", (e) => { if (carries(e)) e.preventDefault(); });
  chat.addEventListener("dragleave", (e) => { if (carries(e)) { inside -= 1; mark(); } });
  chat.addEventListener("drop", (e) => { if (carries(e)) { e.preventDefault(); inside = 0; mark(); add([...e.dataTransfer.files]); } });
  one("#message").addEventListener("paste", (e) => { if (e.clipboardData?.files.length) { e.preventDefault(); add([...e.clipboardData.files]); } });

  const given = [...list.querySelectorAll("input")].map(({ value, dataset }) => ({ token: value, name: dataset.name, words: dataset.words }));
  list.replaceChildren();
  [button.hidden, picker.hidden] = [false, true];
  restore([...given, ...recall()]);
})();
