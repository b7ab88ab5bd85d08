'use strict';
// Calls in the adapter's process: errors with a code and a fixed text, and a count of what runs.

const grpc = require('@grpc/grpc-js');

const failed = (code, details) => Object.assign(new Error(details), { code, details });

class Calls {
  #running = 0;
  #draining = false;
  #idle = [];

  // unary makes a gRPC handler of an async function of the request.
  unary(handle, { whileDraining = false } = {}) {
    return async (call, callback) => {
      if (this.#draining && !whileDraining) {
        callback(failed(grpc.status.UNAVAILABLE, 'adapter is draining'));
        return;
      }
      if (!whileDraining) this.#running++;
      try {
        callback(null, await handle(call.request));
      } catch (err) {
        // Only errors made here have a code; the text of any other could hold what a user must not see.
        callback(err.code === undefined || err.details === undefined ? failed(grpc.status.INTERNAL, 'adapter failed') : err);
        if (err.details === undefined) console.error(`${err.name} in a call`);
      } finally {
        if (!whileDraining) this.#running--;
        if (this.#running === 0) this.#idle.splice(0).forEach((wake) => wake());
      }
    };
  }

  // drain refuses new calls and resolves when running ones have ended, or after the limit.
  async drain(limitMs) {
    this.#draining = true;
    if (this.#running === 0) return;
    let timer;
    await Promise.race([
      new Promise((wake) => this.#idle.push(wake)),
      new Promise((wake) => { timer = setTimeout(wake, limitMs); }),
    ]);
    clearTimeout(timer);
  }
}

module.exports = { Calls, failed };
