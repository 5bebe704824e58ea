/**
 * Our sources without what nothing runs: comments, indentation, and the blanks that types leave behind. V8 keeps the text of
 * every file for as long as a process lives, and a third of ours is that. Lines stay where they are, so that a stack trace
 * names them truly; columns do not.
 */

/**
 * What a source is made of: blanks and comments, code without them, quotes, and what has to be told apart by what is before it:
 * slashes, braces and templates.
 */
const parts =
  /([^\S\n]{2,}|[^\S\n ]|[^\S\n]$|\/\/.*|\/\*[\s\S]*?\*\/)|(\n)|((?:[^\s'"`/{}]| (?=\S))+|'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*")|([`/{}])/my
/** Of a template: up to its end, or to where an expression stands in it. */
const templatePart = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y
const regularExpression = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y

/** After one of these words a slash begins a regular expression; after any other, and after what closes something, it divides. */
const beforeExpression =
  /(?:^|[^\w$.])(?:return|typeof|case|in|of|do|else|void|delete|throw|new|instanceof|yield|await|default) ?$/
const operandEnd = /[\w$\u0080-\uffff)\]}'"`] ?$/

/** Of JavaScript as it is written here. */
export function bare(source: string): string {
  let text = ''
  let at = 0
  let isApart = false
  /** There nothing has to be kept apart. */
  let isLineStart = true
  /** What a slash is told apart by. */
  let last = ''
  /** Braces that are open in each expression of a template that is open. */
  const templates: number[] = []
  const put = (code: string) => {
    if (isApart && !isLineStart) text += ' '
    isApart = isLineStart = false
    text += code
    last = code
  }
  const matched = (form: RegExp): string => {
    form.lastIndex = at
    return form.exec(source)?.[0] ?? ''
  }
  while (at < source.length) {
    parts.lastIndex = at
    const [whole = source[at] as string, blank, newline, code, mark] = parts.exec(source) ?? []
    if (newline !== undefined) {
      text += newline
      isLineStart = true
    } else if (blank !== undefined) {
      for (let line = blank.indexOf('\n'); line >= 0; line = blank.indexOf('\n', line + 1)) {
        text += '\n'
        isLineStart = true
      }
      isApart = true
    } else if (code !== undefined) put(code)
    else if (mark === '/' && (beforeExpression.test(last) || !operandEnd.test(last))) {
      const expression = matched(regularExpression)
      put(expression || mark)
      at += Math.max(0, expression.length - mark.length)
    } else if (mark === '`' || (mark === '}' && templates.at(-1) === 0)) {
      if (mark === '}') templates.pop()
      at++
      const part = matched(templatePart)
      at += part.length - 1
      put(mark + part)
      if (part.endsWith('${')) {
        templates.push(0)
        // An expression begins.
        last = '('
      }
    } else {
      const open = templates.length - 1
      if (open >= 0 && mark !== '/') templates[open] = (templates[open] as number) + (mark === '{' ? 1 : -1)
      put(whole)
    }
    at += whole.length
  }
  return text
}
