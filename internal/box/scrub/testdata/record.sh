#!/bin/bash
# Writes recorded.txtar: what programs that a machine need not have print of the
# invented secrets beside this script. Each file of the archive is named by the
# secret and the command line. Run it where all of them are installed:
#
#   cd internal/box/scrub/testdata && ./record.sh >recorded.txtar
set -u
cd "$(dirname "$0")/secrets"
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cat >"$at/Show.java" <<'END'
import java.nio.file.*;
import java.util.*;
public class Show {
  public static void main(String[] a) throws Exception {
    byte[] b = Files.readAllBytes(Path.of(a[0]));
    System.out.println(Arrays.toString(b));
    System.out.println(HexFormat.ofDelimiter(":").formatHex(b));
    System.out.println(Base64.getMimeEncoder().encodeToString(b));
    System.out.println(java.net.URLEncoder.encode(new String(b), "UTF-8"));
  }
}
END
cat >"$at/serve.py" <<'END'
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204); self.end_headers()
    def log_message(self, *a): pass
s = http.server.HTTPServer(("127.0.0.1", 0), H)
print(s.server_port, flush=True)
s.handle_request()
END
# One command a line; $f is the secret's file, $X its text.
while IFS= read -r command; do
  for f in token pem account; do
    X=$(cat $f)
    case "$command" in
    '[ $f != token ]'*) [ $f = token ] || continue ;;
    curl*) [ $f = token ] || continue
      coproc server { python3 "$at/serve.py"; }
      read -r port <&"${server[0]}" ;;
    esac
    printf -- '-- %s: %s --\n' "$f" "${command#'[ $f != token ] || '}"
    export f X at port=${port-}
    bash -c "$command" 2>&1 | sed -e "s|$at/||g" -e 's/^-- /- - /'
    echo
    [ -z "${server_PID-}" ] || wait "$server_PID"
  done
done <<'END'
xxd $f
xxd -p $f
xxd -i $f
xxd -c 1 $f
hexdump $f
hexdump -C $f
printf %s "prefix $X" | hexdump -C
openssl enc -base64 -in $f
openssl enc -base64 -A -in $f
python3 -c 'import sys; print(repr(open(sys.argv[1]).read()))' $f
python3 -c 'import sys; print(open(sys.argv[1],"rb").read())' $f
python3 -c 'import sys; print(list(open(sys.argv[1],"rb").read()))' $f
python3 -c 'import sys, json; print(json.dumps(json.dumps(open(sys.argv[1]).read())))' $f
python3 -c 'import sys, urllib.parse as u; s = open(sys.argv[1]).read(); print(u.quote(s), u.quote_plus(s), u.quote(u.quote(s, safe="")))' $f
python3 -c 'import sys, html; print("<pre>" + html.escape(open(sys.argv[1]).read()) + "</pre>")' $f
python3 -c 'import sys, shlex; print(shlex.quote(open(sys.argv[1]).read()))' $f
python3 -c 'import sys, base64; sys.stdout.write(base64.encodebytes(open(sys.argv[1],"rb").read()).decode())' $f
[ $f != token ] || python3 -c 'import sys, quopri; sys.stdout.write(quopri.encodestring(open(sys.argv[1],"rb").read()).decode())' $f
python3 -c 'import sys, pprint; pprint.pprint({"key": open(sys.argv[1]).read()})' $f
node -p 'JSON.stringify(require("fs").readFileSync(process.env.f, "utf8"))'
node -p 'encodeURIComponent(require("fs").readFileSync(process.env.f, "utf8"))'
[ $f != token ] || node -p 'require("fs").readFileSync(process.env.f)'
node -p 'JSON.stringify(require("fs").readFileSync(process.env.f))'
node -p 'JSON.stringify(require("fs").readFileSync(process.env.f), null, 2)'
node -p '({env: {KEY: process.env.X}})'
node -p 'require("fs").readFileSync(process.env.f).toString("base64url")'
jq -Rs . $f
jq -Rs '{a: {b: .}} | tojson' $f
jq -Rsr '@html, @uri, @sh, @base64' $f
java $at/Show.java $f
kubectl create secret generic s --from-file=key=$f --dry-run=client -o yaml
kubectl create secret generic s --from-file=key=$f --dry-run=client -o json
kubectl create configmap s --from-file=key=$f --dry-run=client -o yaml
curl -sv -u user:"$X" http://127.0.0.1:$port/
curl -sv -H "Authorization: Bearer $X" http://127.0.0.1:$port/
perl -MData::Dumper -e '$Data::Dumper::Useqq=1; print Dumper($ENV{X})'
END
