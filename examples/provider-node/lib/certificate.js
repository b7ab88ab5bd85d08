'use strict';
// A self-signed certificate for one run, for localhost, the name that the daemon verifies. Node can sign and has no way
// to make a certificate, so the few DER structures are written out here.

const crypto = require('node:crypto');

const der = (tag, ...parts) => {
  const body = Buffer.concat(parts);
  let length = Buffer.from([body.length]);
  if (body.length > 127) {
    const hex = body.length.toString(16);
    const bytes = Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex');
    length = Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
  }
  return Buffer.concat([Buffer.from([tag]), length, body]);
};
const sequence = (...parts) => der(0x30, ...parts);
const oid = (hex) => der(0x06, Buffer.from(hex, 'hex'));
const integer = (bytes) => der(0x02, bytes);
const octets = (...parts) => der(0x04, ...parts);
const yes = der(0x01, Buffer.from([0xff]));
const bits = (bytes) => der(0x03, Buffer.from([0]), bytes);
const utcTime = (date) => der(0x17, Buffer.from(date.toISOString().replace(/^..|[-:T]|\.\d+/g, '')));

const commonName = oid('550403');
const subjectAltName = oid('551d11');
const basicConstraints = oid('551d13');
const ecdsaWithSHA256 = sequence(oid('2a8648ce3d040302'));

function makeCertificate() {
  const { publicKey, privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const serial = crypto.randomBytes(16);
  serial[0] = (serial[0] & 0x7f) | 0x01; // positive, and no leading zero
  const now = Date.now();
  const name = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from('localhost')))));
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSHA256,
    name,
    sequence(utcTime(new Date(now - 60_000)), utcTime(new Date(now + 10 * 365 * 86_400_000))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(
      sequence(subjectAltName, octets(sequence(der(0x82, Buffer.from('localhost'))))),
      sequence(basicConstraints, yes, octets(sequence(yes))),
    )),
  );
  const certificate = sequence(body, ecdsaWithSHA256, bits(crypto.sign('sha256', body, privateKey)));
  return { certificate, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
}

const toPEM = (certificate) =>
  `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64').match(/.{1,64}/g).join('\n')}\n-----END CERTIFICATE-----\n`;

module.exports = { makeCertificate, toPEM };
