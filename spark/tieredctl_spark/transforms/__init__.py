"""From events and objects to states and verdicts, DataFrame to DataFrame, by the rules of the local engine."""
