/** When the page is drawn anew: at most fifteen times a second, and twice while somebody scrolls. */

const FRAME_MS = 66;
const SCROLLING_FRAME_MS = 500;
/** For how long after the last movement somebody still scrolls. */
const SCROLLED_MS = 150;
/** Half a frame of the display: asked for this much before, it is the one that is due, and not the one after. */
const EARLY_MS = 8;

export class Frames {
  constructor(draw) {
    this.draw = draw;
    this.drawnAt = -Infinity;
    this.scrolledAt = -Infinity;
    this.isAsked = false;
    addEventListener("scroll", () => (this.scrolledAt = performance.now()), { passive: true, capture: true });
  }

  /** Draw as soon as it is time. */
  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    this.wait();
  }

  wait() {
    const now = performance.now();
    const most = now < this.scrolledAt + SCROLLED_MS ? SCROLLING_FRAME_MS : FRAME_MS;
    const pause = this.drawnAt + most - EARLY_MS - now;
    if (pause > 0) setTimeout(() => this.wait(), Math.min(pause, FRAME_MS));
    else requestAnimationFrame(() => this.now());
  }

  now() {
    this.isAsked = false;
    this.drawnAt = performance.now();
    this.draw();
  }
}
