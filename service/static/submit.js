// Sends the form's files to the API as the page's own request, says what is wrong with them, and goes to the submission.
"use strict";

const form = document.getElementById("submit");

if (form) {
  const said = document.getElementById("said");
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(form);
    const csrf = fields.get("csrf");
    fields.delete("csrf");
    button.disabled = true;
    said.className = "";
    said.textContent = "Sending…";
    try {
      const answer = await fetch(form.action, { method: "POST", body: fields, headers: { "X-CSRF-Token": csrf } });
      const told = await answer.json();
      if (answer.ok) {
        location.assign(form.dataset.next + told.id);
        return;
      }
      said.textContent = told.message;
    } catch {
      said.textContent = "The service does not answer. Nothing is known to have arrived; send it again in a moment.";
    }
    said.className = "error";
    button.disabled = false;
  });
}
