// Holds the document against the official JSON Schema of OpenAPI 3.1.
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";

const validator = new Validator();
const result = await validator.validate(JSON.parse(readFileSync(process.argv[2], "utf8")));
if (!result.valid || validator.version !== "3.1") {
  console.error(JSON.stringify(result.errors, null, 1));
  process.exit(1);
}
console.log("it is an OpenAPI 3.1 document");
