/**
 * What no log, metric, error or status may tell: a bearer token or a part of one, a private key. Told by their form, so that
 * one is found that no test knows of.
 */
const forms: readonly (readonly [name: string, form: RegExp])[] = [
  ['a private key', /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  // The same in base64, as a kubeconfig has it: of PKCS #8, of SEC 1, of RSA.
  ['a private key in base64', /LS0tLS1CRUdJTiB(?:QUklWQVRF|FQyBQUklW|SU0EgUFJJV)/],
  // How the header or the claims of a signed token begin in base64: alg, aud, exp, iss, kid, sub, typ.
  ['a signed token, or a part of it', /(?<![\w-])eyJ(?:hbGci|hdWQi|leHAi|pc3Mi|raWQi|zdWIi|0eXAi)/],
  ['the claims of a token', /"kubernetes\.io\\*":\s*\{\\*"namespace/],
  ['a bearer token', /\bbearer[ :="\\]+[\w.~+/-]{16}/i],
]

/** Their names, each with where it is; nothing of the credential itself. */
export function credentialsIn(text: string): string[] {
  return forms.flatMap(([name, form]) => {
    const at = form.exec(text)?.index
    return at === undefined ? [] : [`${name} at ${at}, in line ${text.slice(0, at).split('\n').length}`]
  })
}
