/**
 * What the caller may do, as the node told it last.
 *
 * It makes buttons grey and no more: the node decides each request by itself. Nothing is grey before it is known.
 */

import { get } from "./node.js";

/** Stands for a connector that has no name yet: any one that the caller may have. */
export const SOME = Symbol("some connector");

let caller = null;
const expressions = new Map();

/** Ask the node whom it takes the caller for; returns whether their rights are others than before. */
export async function learnRights() {
  const before = caller;
  try {
    caller = await get("whoami");
  } catch {
    return false; // who is refused, or has no node, learns it by the state
  }
  return before !== null && JSON.stringify(before.grants) !== JSON.stringify(caller.grants);
}

/** Why the node would refuse a caller this right to a connector, or without one to the whole node; "": it would not. */
export function refusal(right, connector) {
  if (!right || !caller) return "";
  if (caller.grants.some(({ rights, connectors }) => rights.includes(right) && covers(connectors, connector)))
    return "";
  const what = connector === SOME ? "any connector" : (connector ?? "the whole node");
  return `${caller.name} lacks the right to ${right} ${what}`;
}

function covers(patterns, connector) {
  if (!patterns.length || connector === SOME) return true;
  return connector !== undefined && patterns.some((each) => expressionOf(each).test(connector));
}

/** A pattern of names as the node reads it: a glob of the shell that has to fit the whole name, in its case. */
function expressionOf(pattern) {
  if (!expressions.has(pattern)) {
    const parts = pattern.matchAll(/\[(!?)(\]?[^\]]*)\]|\*|[^]/gu);
    const text = [...parts].map(([part, not, letters]) => {
      if (letters !== undefined) return `[${not && "^"}${letters.replace(/[\\\]^[]/g, "\\$&")}]`;
      return { "*": "[^]*", "?": "[^]" }[part] ?? part.replace(/[\\^$.|+()[\]{}/]/u, "\\$&");
    });
    expressions.set(pattern, compile(text.join("")));
  }
  return expressions.get(pattern);
}

/** A pattern that is none, such as `[z-a]`, fits no name. */
function compile(text) {
  try {
    return new RegExp(`^(?:${text})$`, "u");
  } catch {
    return /[]/;
  }
}
