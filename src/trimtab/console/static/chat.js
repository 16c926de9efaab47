"use strict";
// Asks the gateway itself, as any client does, and writes each piece as it comes; text alone, never HTML.
const form = document.getElementById("chat");
const at = (id) => document.getElementById(id);
let said = [];
let key = "";
let running = null;

async function newKey() {
  const fields = new URLSearchParams({ form_secret: form.elements.form_secret.value, action: "key" });
  const answer = await fetch("/console/chat?format=json", { method: "POST", body: fields });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.fault || found.error?.message || String(answer.status));
  return found.key;
}

async function ask(body, signal) {
  const call = () =>
    fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
      signal,
    });
  if (key) {
    const answer = await call();
    if (answer.status !== 401) return answer;
  }
  key = await newKey();
  let answer = await call();
  for (let times = 0; answer.status === 401 && times < 20; times++) {
    await new Promise((done) => setTimeout(done, 200)); // every worker knows a new key within a second
    answer = await call();
  }
  return answer;
}

async function failure(answer) {
  const text = await answer.text();
  try {
    const found = JSON.parse(text);
    return found.error?.message || found.message || text;
  } catch {
    return text || String(answer.status);
  }
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const data = line.startsWith("data:") ? line.slice(5).trim() : "";
      if (data === "[DONE]") return;
      if (data) yield JSON.parse(data);
    }
  }
}

function turn(who) {
  const box = document.createElement("article");
  const name = document.createElement("h2");
  name.textContent = who;
  const text = document.createElement("div");
  text.className = "text";
  box.append(name, text);
  at("said").append(box);
  return box;
}

// Code between fences as code, all else as it is.
function laidOut(box, text) {
  const place = box.querySelector(".text");
  place.replaceChildren();
  text.split(/^```.*$/m).forEach((part, number) => {
    const piece = document.createElement(number % 2 ? "pre" : "span");
    piece.textContent = number % 2 ? part.replace(/^\n|\n$/g, "") : part;
    place.append(piece);
  });
}

function wish() {
  const system = at("system").value.trim();
  const body = {
    model: at("model").value,
    messages: system ? [{ role: "system", content: system }, ...said] : said,
    stream: true,
    stream_options: { include_usage: true },
  };
  for (const name of ["temperature", "top_p", "max_tokens"]) {
    if (at(name).value !== "") body[name] = Number(at(name).value);
  }
  return body;
}

async function answered(box, node, signal) {
  const begun = performance.now();
  let first = 0, text = "", tokens = 0;
  const tell = () => {
    const seconds = (performance.now() - first) / 1000;
    const note = document.createElement("p");
    note.className = "hint";
    const speed = tokens > 1 && seconds > 0 ? ((tokens - 1) / seconds).toFixed(1) : "-";
    const values = { tokens, first: ((first - begun) / 1000).toFixed(2), speed };
    note.textContent = form.dataset.speed.replace(/\{(\w+)\}/g, (_, name) => values[name]);
    box.append(note);
  };
  const answer = await ask(wish(), signal);
  if (!answer.ok) throw new Error(await failure(answer));
  let counted = null;
  try {
    for await (const event of events(answer)) {
      if (event.error) throw new Error(event.error.message || form.dataset.broken);
      if (event.usage) counted = event.usage.completion_tokens;
      const delta = event.choices?.[0]?.delta ?? {};
      const piece = delta.content || delta.reasoning_content || delta.reasoning || "";
      if (!piece) continue;
      if (!first) first = performance.now();
      tokens += 1;
      if (delta.content) text += piece;
      node.data += piece;
    }
  } finally {
    said.push({ role: "assistant", content: text });
    tokens = counted ?? tokens;
    if (text) laidOut(box, text);
    if (first) tell();
  }
}

async function send() {
  const words = at("words").value.trim();
  at("told").textContent = words ? "" : form.dataset.none;
  if (!words || running) return;
  const before = said.length;
  said.push({ role: "user", content: words });
  laidOut(turn(form.dataset.you), words);
  const box = turn(at("model").value);
  const node = document.createTextNode("");
  box.querySelector(".text").append(node);
  running = new AbortController();
  at("send").disabled = true;
  at("stop").disabled = false;
  try {
    await answered(box, node, running.signal);
    at("words").value = "";
  } catch (error) {
    if (error.name === "AbortError") {
      at("told").textContent = form.dataset.stopped;
    } else {
      at("told").textContent = error.message; // what was typed stays, to be sent again
    }
    if (said.at(-1)?.role === "user" || !said.at(-1)?.content) said.length = before;
  }
  running = null;
  at("send").disabled = false;
  at("stop").disabled = true;
}

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  at("words").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey) send();
  });
  at("stop").addEventListener("click", () => running?.abort());
  at("clear").addEventListener("click", () => {
    running?.abort();
    said = [];
    at("said").replaceChildren();
    at("told").textContent = "";
  });
}
