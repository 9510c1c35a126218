"use strict";
/* A button on every block of code that copies it; outputs and the help of commands have none. */
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight > pre")) {
    if (block.closest(".highlight-text, .highlight-none")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this code");
    button.addEventListener("click", () => {
      const say = (text) => {
        button.textContent = text;
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      };
      navigator.clipboard.writeText(block.textContent.trimEnd()).then(() => say("Copied"), () => say("Press Ctrl+C"));
    });
    block.parentElement.append(button);
  }
});
