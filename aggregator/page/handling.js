// SPDX-License-Identifier: GPL-3.0-or-later
// What people do with an incident: acknowledge it, silence it for a time, add a note. It needs a session of
// scope admin; others see what was done.
import { isAdmin, post, remove } from "./client.js";
import { el, incidentPath, render, time } from "./dom.js";

const SILENCES = [[3600, "1 hour"], [4 * 3600, "4 hours"], [86400, "1 day"], [7 * 86400, "7 days"]];

function isSilent(handling) {
  return Boolean(handling?.silenced) && Date.parse(handling.silenced.until) > Date.now();
}

function by(one) {
  return one.by ? " by " + one.by : "";
}

/** What was done, in words; empty if nothing was. */
export function handled(handling) {
  const parts = [];
  if (handling?.acknowledged)
    parts.push(`acknowledged${by(handling.acknowledged)} at ${time(handling.acknowledged.at)}`);
  if (isSilent(handling))
    parts.push(`silenced${by(handling.silenced)} until ${time(handling.silenced.until)}`);
  return parts.join("; ");
}

/** Events of the incident's history. */
export function events(incident) {
  const list = (incident.notes || []).map((note) => [note.at, `Note${by(note)}: ${note.text}`]);
  const { acknowledged, silenced } = incident.handling || {};
  if (acknowledged)
    list.push([acknowledged.at, `It was acknowledged${by(acknowledged)}.`]);
  if (silenced)
    list.push([silenced.at, `It was silenced${by(silenced)} until ${time(silenced.until)}.`]);
  return list;
}

export class Handling {
  /** `changed` is called with the incident after each act. */
  constructor(id, changed) {
    this.path = incidentPath(id);
    this.changed = changed;
    this.state = el("p", { id: "handled" });
    this.person = el("input", { id: "person", maxlength: "64", size: "14", autocomplete: "nickname" });
    this.note = el("input", { id: "note", maxlength: "500", size: "30" });
    this.term = el("select", { id: "term" }, SILENCES.map(([seconds, text]) => el("option", { value: String(seconds) }, text)));
    this.acknowledge = el("button", { type: "button", id: "acknowledge", on: { click: () => this.act("acknowledge", this.incident.handling?.acknowledged) } });
    this.silence = el("button", { type: "button", id: "silence", on: { click: () => this.act("silence", isSilent(this.incident.handling), { for_seconds: Number(this.term.value) }) } });
    this.error = el("p", { class: "error", role: "alert" });
    this.form = el("form", { on: { submit: (event) => {
      event.preventDefault();
      if (this.note.value.trim())
        this.act("annotate", false, { text: this.note.value.trim() });
    } } },
    el("div", { class: "tools" }, el("label", { for: "person" }, "Your name"), this.person, this.acknowledge),
    el("div", { class: "tools" }, el("label", { for: "term" }, "Messages"), this.term, this.silence),
    el("div", { class: "tools" }, el("label", { for: "note" }, "Note"), this.note, el("button", { type: "submit", id: "annotate" }, "Add the note")));
    this.root = el("section", {}, el("h2", {}, "Handling"), this.state, this.form, this.error);
  }

  set(incident) {
    this.incident = incident;
    this.root.hidden = !incident.handling;
    this.form.hidden = !isAdmin();
    render(this.state, handled(incident.handling), (text) => text || "Nobody has acknowledged or silenced it.");
    this.acknowledge.textContent = incident.handling?.acknowledged ? "Take the acknowledgement back" : "Acknowledge";
    this.silence.textContent = isSilent(incident.handling) ? "End the silence" : "Silence";
    this.term.disabled = isSilent(incident.handling);
  }

  async act(verb, isUndo, body = {}) {
    const person = this.person.value.trim();
    this.error.textContent = "";
    try {
      const incident = await (isUndo ? remove(`${this.path}/${verb}`) : post(`${this.path}/${verb}`, person ? { ...body, by: person } : body));
      if (verb === "annotate")
        this.note.value = "";
      this.changed(incident);
    } catch (problem) {
      this.error.textContent = problem.message;
    }
  }
}
