'use strict';
// Acme, as in examples/provider-acme: facts about a provider with one weekly window.

const crypto = require('node:crypto');
const fs = require('node:fs/promises');
const grpc = require('@grpc/grpc-js');
const { Calls, failed } = require('./calls.js');

const weekSeconds = 7 * 24 * 3600;
const weekly = { window_id: 'weekly', length_seconds: weekSeconds, kind: 'WINDOW_KIND_WEEKLY' };
const services = ['noria.plugin.v1.Plugin', 'noria.provider.v1.Provider'];
const schemas = {
  config: [{ name: 'endpoint', type: 'ATTRIBUTE_TYPE_STRING', default_json: '"http://127.0.0.1:9000"', doc: 'Base URL of Acme.' }],
  account: [{ name: 'token_file', type: 'ATTRIBUTE_TYPE_PATH', required: true, doc: "File that holds the account's token." }],
};

class Acme {
  calls = new Calls();
  #config = null;
  #generation = 0;
  // A generation must say nothing of the token outside of this process.
  #key = crypto.randomBytes(32);

  describe() {
    return { name: 'acme', version: '0.1.0', provider: 'acme', services, config_schema: { attributes: schemas.config },
      account_schema: { attributes: schemas.account }, handshake_version: 1 };
  }

  services() {
    const unary = (handle) => this.calls.unary(handle);
    return {
      'noria.plugin.v1.Plugin': {
        Describe: unary(() => this.describe()),
        Init: unary(() => ({ plugin_services: services })),
        ValidateConfig: unary((req) => ({ diagnostics: validate(req.config) })),
        Configure: unary((req) => this.configure(req)),
        Drain: this.calls.unary((req) => this.calls.drain(req.deadline_ms || 10_000).then(() => ({})), { whileDraining: true }),
      },
      'noria.provider.v1.Provider': {
        Profile: unary(() => this.profile()),
        Lease: unary((req) => this.lease(req)),
        Classify: unary((req) => { this.account(req.account); return classify(req); }),
        Observe: unary((req) => { this.account(req.account); return { windows: [week(req)] }; }),
      },
    };
  }

  configure({ generation, config }) {
    if (generation < this.#generation) throw failed(grpc.status.FAILED_PRECONDITION, 'an older configuration');
    const diagnostics = validate(config);
    if (diagnostics.length === 0) {
      this.#generation = generation;
      this.#config = { provider: block(config.provider_json, schemas.config),
        accounts: new Map(config.accounts.map((a) => [a.name, block(a.config_json, schemas.account)])) };
    }
    return { diagnostics };
  }

  configured() {
    if (!this.#config) throw failed(grpc.status.FAILED_PRECONDITION, 'adapter is not configured');
    return this.#config;
  }

  account(name) {
    const account = this.configured().accounts.get(name);
    if (!account) throw failed(grpc.status.NOT_FOUND, 'account is not configured');
    return account;
  }

  profile() {
    const answer = (status) => ({ status, headers: [{ name: 'Content-Type', value: 'application/json' }], body: Buffer.from('{"error":"{{sentence}}"}') });
    return { profile: {
      routes: [{ method: 'POST', path: '/v1/chat', kind: 'ROUTE_KIND_TURN', retryable: true }],
      identity: { session: [{ header: 'acme-session' }], model: [{ body_pointer: '/model' }] },
      exposure: { response_headers: ['acme-used-percent', 'acme-reset', 'retry-after'], error_body_bytes: 4096 },
      stream: { framing: 'FRAMING_NONE' },
      headers: { credentials: ['authorization'] },
      fallbacks: { wrong_key: answer(401), unknown_path: answer(404), unavailable_until: answer(429), unavailable: answer(503), adapter_away: answer(503) },
      accounts: [...this.configured().accounts.keys()].map((account) => ({ account, windows: [weekly] })),
    } };
  }

  async lease({ account }) {
    const { token_file: file } = this.account(account);
    const token = await fs.readFile(file, 'utf8').then((text) => text.trim(), () => '');
    if (!token) {
      return { refusal: { code: 'REFUSAL_CODE_SIGNED_OUT', reason: "Put the account's token into its token_file." } };
    }
    return { lease: { base_url: this.configured().provider.endpoint, set: [{ name: 'authorization', value: `Bearer ${token}` }],
      generation: crypto.createHmac('sha256', this.#key).update(token).digest('hex').slice(0, 16) } };
  }
}

// block parses a block and fills in defaults.
function block(json, schema) {
  const values = json.length > 0 ? JSON.parse(json.toString()) : {};
  for (const a of schema) {
    if (a.default_json && (values[a.name] ?? null) === null) values[a.name] = JSON.parse(a.default_json);
  }
  return values;
}

function validate(config) {
  const found = [];
  const wrong = (account, attribute, summary, detail) => found.push({ severity: 'SEVERITY_ERROR', account, attribute, summary, detail });
  const check = (json, schema, account) => {
    const values = block(json, schema);
    for (const name of Object.keys(values)) {
      if (!schema.some((a) => a.name === name)) wrong(account, name, 'Unknown attribute', 'Remove it.');
    }
    for (const a of schema) {
      const value = values[a.name] ?? null;
      if (value === null && a.required) wrong(account, a.name, 'Missing attribute', 'The attribute is required.');
      if (value !== null && typeof value !== 'string') wrong(account, a.name, 'Invalid attribute', 'The attribute must be a string.');
    }
  };
  check(config.provider_json, schemas.config, '');
  const names = config.accounts.map((a) => a.name);
  for (const a of config.accounts) check(a.config_json, schemas.account, a.name);
  if (new Set(names).size < names.length) wrong('', '', 'Account name used twice', 'Give every account a name of its own.');
  return found;
}

function classify(req) {
  const verdict = (outcome, scope, reason, more = {}) => ({ outcome: `OUTCOME_${outcome}`, scope: `SCOPE_${scope}`, reason, ...more });
  if (req.status === 429 && errorOf(req.body) === 'quota') {
    const window = { ...week(req), state: 'WINDOW_STATE_EXHAUSTED', source: 'SOURCE_REJECTION' };
    return verdict('QUOTA_EXHAUSTED', 'ACCOUNT', 'quota', { window_id: window.window_id, clears_at: window.resets_at, windows: [window] });
  }
  if (req.status === 429) {
    const seconds = decimal(header(req, 'retry-after')) ?? 0;
    return verdict('THROTTLED', 'ACCOUNT', 'rate', { retry_after_ms: seconds > 0 && seconds < 366 * 86_400 ? Math.floor(seconds * 1000) : 0 });
  }
  if (req.status === 401) return verdict('AUTH_FAILED', 'ACCOUNT', 'unauthorized');
  if (req.status >= 500 && req.status <= 599) return verdict('OVERLOADED', 'PROVIDER', 'server_error');
  if (req.status >= 400 && req.status <= 499) return verdict('CLIENT_ERROR', 'REQUEST', 'client_error');
  return verdict('UNKNOWN_ERROR', 'REQUEST', 'unknown');
}

function errorOf(body) {
  try {
    return JSON.parse(body?.toString() ?? '')?.error;
  } catch {
    return undefined;
  }
}

// header gives a header's value, and nothing when it was sent with different values.
function header(req, name) {
  const values = new Set(req.response_headers.filter((h) => h.name.toLowerCase() === name).map((h) => h.value));
  return values.size === 1 ? [...values][0].trim() : '';
}

// decimal reads a strict decimal; Number takes exponents, hex, blanks and more.
const decimal = (text) => (/^-?\d{1,12}(\.\d{1,12})?$/.test(text) ? Number(text) : undefined);

function week(req) {
  const observed = Number(req.observed_at?.seconds ?? 0);
  const used = decimal(header(req, 'acme-used-percent'));
  const text = header(req, 'acme-reset');
  const reset = /^\d{1,12}$/.test(text) ? Number(text) : 0;
  const window = { ...weekly, state: 'WINDOW_STATE_UNKNOWN', source: 'SOURCE_RESPONSE_HEADER', observed_at: req.observed_at };
  if (used !== undefined && used >= -10 && used <= 110) {
    window.used_percent = Math.min(Math.max(used, 0), 100);
    window.state = 'WINDOW_STATE_OBSERVED';
  }
  if (reset >= observed - 3600 && reset <= observed + weekSeconds + 3600) window.resets_at = { seconds: reset, nanos: 0 };
  return window;
}

module.exports = { Acme };
