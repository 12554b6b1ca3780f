/** Preact and htm as the views use them: `html` makes elements, `Component` keeps what a part of a view remembers. */

import htm from "../vendor/htm.mjs";
import { Component, createRef, h, render } from "../vendor/preact.mjs";

export const html = htm.bind(h);
export { Component, createRef, render };
