// On the page that takes a teacher's choice back to the platform: send its form, which a button does without scripts.
document.getElementById("lti-return").submit();
