"use strict";
// The pages work without this file, but for Copy and Chat.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    source.select();
    try {
      await navigator.clipboard.writeText(source.value);
    } catch {
      document.execCommand("copy"); // a page without TLS may not ask for the clipboard
    }
    button.textContent = button.dataset.copied;
  });
}
