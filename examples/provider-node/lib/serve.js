'use strict';
// What the Go SDK does for its adapters: the handshake, mutual TLS, health, limits, signals, the death of the daemon.

const fs = require('node:fs');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const { HealthImplementation } = require('grpc-health-check');
const { makeCertificate, toPEM } = require('./certificate.js');

const cookie = { name: 'NORIA_PLUGIN', value: '2f1c2d7e-noria-provider-adapter' };
const maxMessage = 1 << 20;
const drainMs = 2000;
const empty = { requestStream: false, responseStream: false, requestSerialize: () => Buffer.alloc(0), requestDeserialize: () => ({}),
  responseSerialize: () => Buffer.alloc(0), responseDeserialize: () => ({}) };

// load reads the .proto files of the protocol and gives the services by their full names.
function load(protoDir) {
  const files = ['plugin/v1/plugin.proto', 'provider/v1/provider.proto'].map((f) => path.join('noria', f));
  return loader.loadSync(files, { includeDirs: [protoDir], keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true });
}

// main does what the arguments ask for. adapter: { describe(), services(calls), calls }.
async function main(adapter, protoDir) {
  const [command, ...more] = process.argv.slice(2);
  if (command === 'describe' && more.length === 0) {
    fs.writeSync(1, `${JSON.stringify(adapter.describe(), null, 2)}\n`);
    return;
  }
  if (command !== undefined || process.env[cookie.name] !== cookie.value) {
    console.error('This is a provider adapter of Noria. The daemon starts it. By hand: describe.');
    process.exitCode = 2;
    return;
  }
  await serve(adapter, load(protoDir));
}

async function serve(adapter, definitions) {
  const clientCertificate = process.env.PLUGIN_CLIENT_CERT;
  const socketDir = process.env.PLUGIN_UNIX_SOCKET_DIR;
  if (!clientCertificate || !socketDir) {
    console.error('the daemon asked for no TLS, or named no directory for the socket');
    process.exit(1);
  }
  const server = new grpc.Server({ 'grpc.max_receive_message_length': maxMessage, 'grpc.max_send_message_length': maxMessage });
  for (const [name, methods] of Object.entries(adapter.services())) {
    server.addService(definitions[name], methods);
  }
  const health = new HealthImplementation({ plugin: 'SERVING' });
  health.addToServer(server);
  const end = () => {
    server.tryShutdown(() => process.exit(0));
    setTimeout(() => process.exit(0), drainMs).unref();
  };
  // go-plugin's own way to say goodbye.
  server.addService({ Shutdown: { ...empty, path: '/plugin.GRPCController/Shutdown' } },
    { Shutdown: (_, callback) => { callback(null, {}); end(); } });

  const { certificate, privateKey } = makeCertificate();
  const credentials = grpc.ServerCredentials.createSsl(Buffer.from(clientCertificate),
    [{ private_key: Buffer.from(privateKey), cert_chain: Buffer.from(toPEM(certificate)) }], true);
  const socket = path.join(socketDir, 'adapter');
  await new Promise((done, fail) => server.bindAsync(`unix:${socket}`, credentials, (err) => (err ? fail(err) : done())));

  fs.writeSync(1, `1|1|unix|${socket}|grpc|${certificate.toString('base64').replace(/=+$/, '')}\n`);
  // Standard output has done its work; what is printed from here on is for the log.
  process.stdout.write = process.stderr.write.bind(process.stderr);

  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => adapter.calls.drain(drainMs).then(end));
  watchDaemon();
}

// watchDaemon ends the process with the daemon: its pipe ends, or its process is no longer the parent.
function watchDaemon() {
  if (process.env.NORIA_PLUGIN_STDIN === '1') {
    process.stdin.on('end', () => process.exit(0)).on('error', () => process.exit(0)).resume();
  }
  const parent = Number(process.env.NORIA_PLUGIN_PARENT);
  if (parent === process.ppid) {
    setInterval(() => process.ppid === parent || process.exit(0), 500).unref();
  }
}

module.exports = { main };
